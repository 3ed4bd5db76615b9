package space

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// The report of a task's end is strict: what would be lost, or count as something else, is an error that names it.
func TestTask_ACompletionIsStrict(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"key":"a"}`:                             "",
		`{"key":"a","out":null}`:                  "",
		`{"key":"a","n":3,"out":{"any":"thing"}}`: "",
		`{"key":"a","error":{"code":7}}`:          "",
		`{"key":"a","error":"no","attempt":2}`:    "",
		`{"key":"a","progress":0.5}`:              "",
		`{"kee":"a"}`:                             "it names no task",
		`{"key":"a","result":5}`:                  `it has the key "result", which means nothing here`,
		`{"key":"a","err":"no"}`:                  `it has the key "err"`,
		`{"key":"a","error":null}`:                "its error is null",
		`{"key":"a","error":"no","out":5}`:        "an out and an error",
		`{"key":"a","n":"3","out":5}`:             `its n is "3"; it must be a whole number`,
		`{"key":"a","n":-1,"out":5}`:              "its n is -1",
		`{"key":"a","attempt":1.5,"error":"no"}`:  "its attempt is 1.5",
		`{"key":"a","attempt":null,"error":"no"}`: "its attempt is null",
	} {
		v, err := model.ParseValue([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		_, err = readCompletion(v)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", payload, err, want)
		}
	}
}
