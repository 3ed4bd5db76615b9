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
func diffLines(old, new []string, compare bool) []sourceLine {
	if !compare {
		out := make([]sourceLine, len(new))
		for i, text := range new {
			out[i] = sourceLine{New: i + 1, Text: text, Kind: "same"}
		}
		return out
	}
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	var out []sourceLine
	for i := range head {
		out = append(out, sourceLine{Old: i + 1, New: i + 1, Text: new[i], Kind: "same"})
	}
	out = append(out, between(old[head:len(old)-tail], new[head:len(new)-tail], head)...)
	for i := range tail {
		o, n := len(old)-tail+i, len(new)-tail+i
		out = append(out, sourceLine{Old: o + 1, New: n + 1, Text: new[n], Kind: "same"})
	}
	return out
}

// between compares by the longest common subsequence. Beyond maxCompared everything counts as replaced.
func between(old, new []string, head int) (out []sourceLine) {
	gone := func(i int) { out = append(out, sourceLine{Old: head + i + 1, Text: old[i], Kind: "gone"}) }
	added := func(j int) { out = append(out, sourceLine{New: head + j + 1, Text: new[j], Kind: "added"}) }
	i, j := 0, 0
	if len(old) <= maxCompared && len(new) <= maxCompared {
		length := make([][]int16, len(old)+1) // of the common subsequence of what is left
		for k := range length {
			length[k] = make([]int16, len(new)+1)
		}
		for a := len(old) - 1; a >= 0; a-- {
			for b := len(new) - 1; b >= 0; b-- {
				if old[a] == new[b] {
					length[a][b] = length[a+1][b+1] + 1
				} else {
					length[a][b] = max(length[a+1][b], length[a][b+1])
				}
			}
		}
		for i < len(old) && j < len(new) {
			switch {
			case old[i] == new[j]:
				out = append(out, sourceLine{Old: head + i + 1, New: head + j + 1, Text: new[j], Kind: "same"})
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
	for ; i < len(old); i++ {
		gone(i)
	}
	for ; j < len(new); j++ {
		added(j)
	}
	return out
}
