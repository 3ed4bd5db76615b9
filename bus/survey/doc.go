// Package survey finds out everything about a deployment that can be read without changing anything: its servers,
// streams, members and services, and the rights of the user. `settle doctor` and `settle fleet` judge it;
// the survey contains no judgement.
package survey
