package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
)

func TestQuery_AnswersAboutManySpaces(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, orders())
	for _, space := range []string{"alice", "bob"} {
		for i := range 2 {
			if _, err := client.Call(t.Context(), settle.Outgoing{Space: space, Stream: "order", ID: settle.ID(fmt.Sprint("o", i))}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.Call(t.Context(), settle.Outgoing{Space: space, Stream: "cancel", ID: settle.ID("c")}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(args ...string) (out, errs string, code int) {
		var o, e strings.Builder
		code = run(t.Context(), append([]string{"query", "--nats", url}, args...), &o, &e)
		return o.String(), e.String(), code
	}
	if out, errs, code := ask("SELECT space, value AS n FROM documents WHERE document = 'n' ORDER BY space"); code != 0 || out != "space  n\nalice  2\nbob    2\n" {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if out, errs, code := ask("--csv", "SELECT space, outcome, count(*) AS times FROM receipts WHERE stream IN ('order', 'cancel') GROUP BY 1, 2"); code != 0 ||
		out != "space,outcome,times\nalice,failed,1\nalice,handled,2\nbob,failed,1\nbob,handled,2\n" {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if out, errs, code := ask("--json", "--spaces", "ali*", "SELECT space, json_object('n', json(value)) AS at, 1.5 AS half, null AS none FROM documents WHERE document = 'n'"); code != 0 ||
		out != `{"space":"alice","at":{"n":2},"half":1.5,"none":null}`+"\n" {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	for sql, want := range map[string]string{
		"DELETE FROM documents":        "a query only reads: it begins with SELECT or WITH, and asks the tables documents, receipts, spaces",
		"SELECT nosuch FROM documents": "no such column: nosuch",
		"SELECT * FROM docs":           "no such table: docs",
		"SELECT 1; SELECT 2":           "a query is one statement",
	} {
		if out, errs, code := ask(sql); code == 0 || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: %d, %s%s, want %s", sql, code, out, errs, want)
		}
	}
	if _, errs, code := ask("--max-spaces", "1", "SELECT * FROM spaces"); code == 0 || !strings.Contains(errs, "--max-spaces") {
		t.Errorf("%d, %s", code, errs)
	}
	if _, errs, code := ask("--max-mib", "10000", "SELECT 1"); code == 0 || !strings.Contains(errs, "--max-mib is at most 1920") {
		t.Errorf("%d, %s", code, errs)
	}
}
