// Package agent is a workspace in which a model, its tools and people work on something: messages,
// calls of tools, approvals, deadlines and cancellation. The model is a script. README.md tells
// what it shows.
//
//	          tell               cancel
//	Idle ------------> Thinking --------> Cancelled (from anywhere; tell leads out of it)
//	 ^                 |  ^   |
//	 '---- an answer --'  |   '- a call -> Waiting   (for approve, or until expire)
//	                      |                   | OK
//	      what has come --'--- not OK --------'---> Acting
//	                      '--------------------------'
//
// Each arrow is one event of one lane, so each finds the workspace as the last one has left it.
package agent
