package settletest

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// here is behind a finding the line of the test that was reading or writing with a cell, a derived
// document or rows: testing would name one of theirs, since Helper is not for other packages to say
// of them. It is "" where testing names the right one.
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
