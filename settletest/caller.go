package settletest

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// here returns the line of the test that was reading or writing through a cell, a derived document or rows,
// to append to a finding: testing would report a line of package settle, whose functions do not call Helper.
// It returns "" where testing reports the right line.
func here() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	through := false
	for {
		f, more := frames.Next()
		cell := strings.HasPrefix(f.Function, "github.com/settlehq/settle.")
		switch {
		case cell:
			through = true
		case strings.HasPrefix(f.Function, "github.com/settlehq/settle/settletest."):
		case !through:
			return ""
		default:
			return "\n    at " + filepath.Base(f.File) + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}
