package console

import "strings"

// maxCompared bounds the lines between the common beginning and the common end of two texts that are compared line by line.
const maxCompared = 2000

// linesOf returns the lines of a text.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// diffLines returns the lines of the new text, and if compare is set among them those that are gone.
func diffLines(was, now []string, compare bool) []sourceLine {
	if !compare {
		out := make([]sourceLine, len(now))
		for i, text := range now {
			out[i] = sourceLine{New: i + 1, Text: text, Kind: "same"}
		}
		return out
	}
	head := 0
	for head < len(was) && head < len(now) && was[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(was)-head && tail < len(now)-head && was[len(was)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	var out []sourceLine
	for i := range head {
		out = append(out, sourceLine{Old: i + 1, New: i + 1, Text: now[i], Kind: "same"})
	}
	out = append(out, between(was[head:len(was)-tail], now[head:len(now)-tail], head)...)
	for i := range tail {
		o, n := len(was)-tail+i, len(now)-tail+i
		out = append(out, sourceLine{Old: o + 1, New: n + 1, Text: now[n], Kind: "same"})
	}
	return out
}

// between compares by the longest common subsequence. Beyond maxCompared everything counts as replaced.
func between(was, now []string, head int) (out []sourceLine) {
	gone := func(i int) { out = append(out, sourceLine{Old: head + i + 1, Text: was[i], Kind: "gone"}) }
	added := func(j int) { out = append(out, sourceLine{New: head + j + 1, Text: now[j], Kind: "added"}) }
	i, j := 0, 0
	if len(was) <= maxCompared && len(now) <= maxCompared {
		length := make([][]int16, len(was)+1) // of the common subsequence of what is left
		for k := range length {
			length[k] = make([]int16, len(now)+1)
		}
		for a := len(was) - 1; a >= 0; a-- {
			for b := len(now) - 1; b >= 0; b-- {
				if was[a] == now[b] {
					length[a][b] = length[a+1][b+1] + 1
				} else {
					length[a][b] = max(length[a+1][b], length[a][b+1])
				}
			}
		}
		for i < len(was) && j < len(now) {
			switch {
			case was[i] == now[j]:
				out = append(out, sourceLine{Old: head + i + 1, New: head + j + 1, Text: now[j], Kind: "same"})
				i, j = i+1, j+1
			case length[i+1][j] >= length[i][j+1]:
				gone(i)
				i++
			default:
				added(j)
				j++
			}
		}
	}
	for ; i < len(was); i++ {
		gone(i)
	}
	for ; j < len(now); j++ {
		added(j)
	}
	return out
}
