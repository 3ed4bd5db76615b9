package tasks

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// section returns a section of docs/performers.md.
func section(t *testing.T, title string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/performers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+title+"\n")
	if !found {
		t.Fatalf("docs/performers.md has no section %q", title)
	}
	if end := regexp.MustCompile(`\n#+ `).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}

// named returns what the first column of a section's tables names in code.
func named(section string) (list []string) {
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
				list = append(list, m[1])
			}
		}
	}
	slices.Sort(list)
	return list
}

// The page has every field of the work, and no other.
func TestProtocol_ThePageHasTheFieldsOfTheWork(t *testing.T) {
	t.Parallel()
	how := NewOffers(nil).remote(&space.Remote{Timeout: time.Minute})
	o := &offered{l: New(Host{Space: "s"}), how: how, queue: "q", attempt: &Attempt{Event: "e"}, t: &task{action: "a", Task: space.Task{Key: "k", Progress: model.Int(1)}}}
	o.work = space.Work{In: model.Int(1), Run: "r", Attempt: 1}
	v, err := model.ParseValue(o.request("answer", "cancel"))
	if err != nil {
		t.Fatal(err)
	}
	if fields := named(section(t, "### Work")); !slices.Equal(fields, v.Keys()) {
		t.Errorf("the page has the fields %q, the work %q", fields, v.Keys())
	}
}

// Each answer of the page can be used, and each of the answers that there are is on the page.
func TestProtocol_TheAnswersOfThePageAreRead(t *testing.T) {
	t.Parallel()
	forms := map[string]int{}
	value := strings.NewReplacer("VALUE", "7", "TYPE", `"Offline"`, "TEXT", `"a text"`)
	for _, text := range regexp.MustCompile("`(\\{[^`]+\\})`").FindAllStringSubmatch(section(t, "### Answers"), -1) {
		if strings.HasPrefix(text[1], `{"ok"`) || strings.HasPrefix(text[1], `{"over"`) || strings.HasPrefix(text[1], `{"refused"`) {
			continue
		}
		a, wrong := readAnswer([]byte(value.Replace(text[1])))
		switch {
		case wrong != nil:
			t.Errorf("%s: %s", text[1], wrong.Message)
		case a.busy:
			forms["busy"]++
		case a.failed != nil:
			forms["error "+a.failed.Type]++
			if a.failed.Message != "a text" {
				t.Errorf("%s: the message is %q", text[1], a.failed.Message)
			}
		case !a.out.IsAbsent():
			forms["out"]++
		case !a.progress.IsAbsent():
			forms["progress"]++
		default:
			forms["claim or heartbeat"]++
		}
	}
	for _, form := range []string{"busy", "error Offline", "error Error", "out", "progress", "claim or heartbeat"} {
		if forms[form] == 0 {
			t.Errorf("the page has no answer of the form %q", form)
		}
	}
}

func TestProtocol_ThePageHasTheTypesOfErrors(t *testing.T) {
	t.Parallel()
	types := []string{AnswerError, DeadlineError, LimitError, LostError, QueueError, TimeoutError}
	got := slices.DeleteFunc(named(section(t, "## What the worker does")), func(name string) bool { return !strings.HasSuffix(name, "Error") })
	if !slices.Equal(got, types) {
		t.Errorf("the page has %q, the code %q", got, types)
	}
}

func TestProtocol_ThePauseAndTimesOfThePage(t *testing.T) {
	t.Parallel()
	text := section(t, "## What the worker does")
	for _, want := range []string{
		"after " + pauses[busy].first.String() + " when all are busy", "250 ms when none is there", "doubled up to 1 s and 5 s", "no answer within 3 s", "no message for three times `heartbeat_ms`",
	} {
		if !strings.Contains(strings.ReplaceAll(text, " ms", "ms"), strings.ReplaceAll(want, " ms", "ms")) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if pauses[absent].first != 250*time.Millisecond || pauses[busy].most != time.Second || pauses[absent].most != 5*time.Second || claimWithin != 3*time.Second || lostAfter != 3 {
		t.Error("the times have changed; docs/performers.md has the former ones")
	}
}
