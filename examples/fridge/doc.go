// Package fridge is a fridge with sensors: what is derived from its readings, and an alarm that
// does not cry wolf. README.md tells what it shows.
//
//	temp (a reading) -> readings ..> mean ...> verdict ..> status
//	                             ..> extent      |    '..> (the handler of judge)
//	                             ..> tiles       |
//	door ------------> door ....................'          judge -> alarm, or a timer
//	hour (cron) -----> hours ....> day ...> trend          raise (the timer) -> alarm
//
// What is derived (dots) is computed while somebody looks, or when a handler reads it. What
// depends on what was before, and must not depend on whether anybody looks, is state: documents
// that handlers write (dashes).
package fridge
