package star

// testEngine is that of package program/startest, which an external test sets: a test of this
// package cannot import what imports it.
var testEngine Engine

// SetTestEngine sets the engine of the package's own tests.
func SetTestEngine(e Engine) { testEngine = e }
