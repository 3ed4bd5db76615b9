// Package agent is a workspace of a model, its tools and people: messages,
// tool calls, approvals, deadlines and cancellation. The model is a script. README.md describes
// it.
//
//	          tell               cancel
//	Idle ------------> Thinking --------> Cancelled (from anywhere; tell leads out of it)
//	 ^                 |  ^   |
//	 '---- an answer --'  |   '- a call -> Waiting   (for approve, or until expire)
//	                      |                   | OK
//	      what has come --'--- not OK --------'---> Acting
//	                      '--------------------------'
//
// Each arrow is one event of one lane, so its handler reads the workspace as the previous one has left it.
package agent
