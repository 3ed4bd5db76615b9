package history

import "slices"

// ending is where a reader that goes backwards through a log has come to.
type ending int

const (
	stopped ending = iota // its caller has had enough
	whole                 // at the first commit that the space has made
	cutOff                // at the first commit that the log still has
)

const (
	// firstWidth is the first range of sequences that backward reads, and stretchLimit the number of commits that it holds in memory.
	firstWidth   = 64
	stretchLimit = 512
)

// backward passes the commits of the space to each, the newest first, from the last one at or below a sequence, until each returns false.
//
// A log is read forwards, in ranges of sequences, which other spaces of the partition share: a range is made wider while the space has few
// commits in it. Where the next range ends is known exactly, since each commit names the one before it.
func (l *logReader) backward(high uint64, each func(*logged) bool) (ending, error) {
	for width := uint64(firstWidth); high > 0; {
		stretch, over, err := l.stretch(high-min(high, width), high)
		switch {
		case err != nil:
			return stopped, err
		case over:
			width /= 2
			continue
		case len(stretch) == 0:
			high -= min(high, width)
			width *= 2
			continue
		case len(stretch) < firstWidth:
			width *= 2
		}
		for _, e := range slices.Backward(stretch) {
			if !each(e) {
				return stopped, nil
			}
		}
		if high = stretch[0].prev; high == 0 {
			return whole, nil
		}
	}
	return cutOff, nil
}

// stretch returns the commits after low, up to high; over reports that there are too many.
func (l *logReader) stretch(low, high uint64) (all []*logged, over bool, err error) {
	err = l.between(low, high, func(e *logged) bool {
		if over = len(all) == stretchLimit && high-low > stretchLimit; !over {
			all = append(all, e)
		}
		return !over
	})
	return all, over, err
}
