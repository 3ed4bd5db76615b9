// Package fridge is a fridge with sensors: documents derived from its readings, and an alarm without
// false alerts. README.md describes it.
//
//	temp (a reading) -> readings ..> mean ...> verdict ..> status
//	                             ..> extent      |    '..> (the handler of judge)
//	                             ..> tiles       |
//	door ------------> door ....................'          judge -> alarm, or a timer
//	hour (cron) -----> hours ....> day ...> trend          raise (the timer) -> alarm
//
// Derived documents (dots) are computed while they are watched, or when a handler reads them. State
// that depends on earlier events, and must not depend on whether it is watched, is in documents
// that handlers write (dashes).
package fridge
