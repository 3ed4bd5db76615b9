//go:build !unix

package embedded

import "os"

// lockFile does nothing where there is no lock that ends with the process: one
// that outlived it would be worse than none.
func lockFile(*os.File) error { return nil }
