package clidoc

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestMarkdown_HasEveryCommandArgumentAndFlagThatIsNotHidden(t *testing.T) {
	var app struct {
		Put struct {
			Key   string `arg:"" help:"The key."`
			Value string `arg:"" optional:"" help:"a|b."`
			Level string `help:"How loud." enum:"low,high" default:"low" env:"LEVEL"`
			Quiet bool   `hidden:""`
		} `cmd:"" help:"Put a value."`
		Secret struct{} `cmd:"" hidden:""`
	}
	parser, err := kong.New(&app, kong.Name("store"), kong.Description("Keeps values."))
	if err != nil {
		t.Fatal(err)
	}
	text := Markdown(parser.Model)
	for _, want := range []string{
		"## store\n\nKeeps values.\n", "#### store put\n\nPut a value.\n", "store put KEY [VALUE] [flags]\n",
		"| `KEY` | The key. |\n", "| `VALUE` | a\\|b. |\n", "| `--level` | `low` | `LEVEL` | How loud. One of: low, high. |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	for _, hidden := range []string{"secret", "quiet"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s is hidden, and in\n%s", hidden, text)
		}
	}
}
