package star

// testEngine is the engine of package program/startest, which an external test sets: a test of this
// package cannot import a package that imports it.
var testEngine Engine

// SetTestEngine sets the engine of the package's own tests.
func SetTestEngine(e Engine) { testEngine = e }
