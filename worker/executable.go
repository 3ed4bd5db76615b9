package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"regexp"
	"sync"
)

// executable identifies this program: "" if its file cannot be read, and then nodes without a version are not observed.
var executable = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return identify(f)
})

// beginning is how much of an executable is searched for its build ID, which linkers put in front of the code.
const beginning = 64 << 10

// buildID matches the build ID that the go command gives to what it builds: hashes of what went into it and of what came out. In ELF files it is in a note,
// in others in a text. What other build systems put there instead ("redacted", for example) is not of this form.
var buildID = regexp.MustCompile(`(?:Go\x00\x00|Go build ID: ")((?:[A-Za-z0-9_-]{20}/){3}[A-Za-z0-9_-]{20})[^A-Za-z0-9_/-]`)

// identify returns a name that two executables share only if the same code was built. It follows from the build ID, since hashing a large executable
// takes longer than everything else at the start of a worker; without one, the name is a hash of the whole file.
func identify(file io.Reader) string {
	h := sha256.New()
	start := make([]byte, beginning)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return ""
	}
	if id := buildID.FindSubmatch(start[:n]); id != nil {
		h.Write(id[1])
	} else {
		h.Write(start[:n])
		if _, err := io.Copy(h, file); err != nil {
			return ""
		}
	}
	return "exe:" + hex.EncodeToString(h.Sum(nil)[:16])
}
