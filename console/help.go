package console

import "net/http"

// keys are those that assets/console.js knows, with their effect.
var keys = [][2]string{
	{"/", "find"},
	{"j k", "next and previous row"},
	{"Enter", "open the row"},
	{"x", "select the row"},
	{"w", "why: the reason of the row, or of the selected node"},
	{"c", "copy the command that prints the same"},
	{"p", "pause, and go on"},
	{"[ ]", "back, and on: pages of a list, older and newer values"},
	{"g", "then o, s: overview, spaces"},
	{"?", "this page"},
}

// meanings are the marks, with a word and what they stand for.
var meanings = [][3]string{
	{"clean", "clean", "up to date, or well"},
	{"invalid", "invalid", "due to run, or does not converge"},
	{"running", "running", "inside of application code, or busy"},
	{"gated", "gated", "held until a time"},
	{"waiting", "waiting", "waits for something that has not arrived"},
	{"parked", "parked", "at the head of the lane, and tried again"},
	{"failed", "failed", "ended in an error"},
	{"quarantined", "quarantined", "set aside until an operator decides"},
	{"dormant", "dormant", "nothing needs it"},
}

// helpPage is what the template of the help gets.
type helpPage struct {
	Keys            [][2]string
	Marks           [][3]string
	Version, Prefix string
}

// WindowTitle returns the title of the window.
func (helpPage) WindowTitle() string { return "Keys" }

func (c *Console) serveHelp(w http.ResponseWriter, r *http.Request) {
	if visitorOf(r) == nil {
		c.askToken(w, r)
		return
	}
	c.looks.alone(w, r, http.StatusOK, "help", helpPage{keys, meanings, c.cfg.Version, c.cfg.Bus.Prefix()})
}
