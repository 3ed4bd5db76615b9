package star

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// decl is a declaration that the files have registered. Every instance of a program has the same
// declarations, in the same order.
type decl struct {
	kind   string // handler, computation, effect, rows, cron, action, workflow, schedule, made by reads
	id     string // of a handler the stream
	pos    syntax.Position
	fn     starlark.Callable
	schema *value.Schema
	// internal reports that clients may not send on the stream.
	internal bool
	spec     space.NodeSpec
	// from and to are the place of the rows and the document of their results, for rows.
	from *value.Place
	to   string
	job  space.CronSpec
	expr string
	keep time.Duration // of an action, and of runs
	// deadline is how long after its start a task of an action may end.
	deadline time.Duration
	// remote is how performers get the tasks of an action, nil if they do not.
	remote *space.Remote
	fleet  space.Fleet
	// graph is that of a workflow, and keepRuns how many ended runs of it stay.
	graph     *workflow.Graph
	keepRuns  int
	scheduled *scheduled // of a schedule
	spaces    []string   // that reads create
}

// output returns the document that a node derives, "" for none.
func (d *decl) output() string {
	if d.kind == "rows" {
		return d.to
	}
	return d.spec.Output
}

// checkArity refuses a function that cannot be called with n arguments.
func checkArity(fn starlark.Callable, n int, what string) error {
	f, ok := fn.(*starlark.Function)
	if !ok {
		return fmt.Errorf("%s is a builtin; give a function of the program", fn.Name())
	}
	params := f.NumParams()
	if f.HasVarargs() || f.HasKwargs() || f.NumKwonlyParams() > 0 {
		return fmt.Errorf("function %s has * or ** parameters; %s", f.Name(), what)
	}
	required := params
	for required > 0 && f.ParamDefault(required-1) != nil {
		required--
	}
	if n < required || n > params {
		return fmt.Errorf("function %s has the wrong number of parameters, %d; %s", f.Name(), params, what)
	}
	return nil
}

// options are the arguments that nodes of every kind have.
type options struct {
	debounce, maxWait, throttle, group starlark.String
	volatile                           bool
	writes, envelope, reads            *starlark.List
	output                             starlark.Value
}

func (o *options) pairs() []any {
	return []any{
		"debounce?", &o.debounce, "max_wait?", &o.maxWait, "throttle?", &o.throttle, "group?", &o.group,
		"volatile?", &o.volatile, "writes?", &o.writes, "envelope?", &o.envelope, "reads?", &o.reads,
	}
}

// apply sets the options in a spec.
func (o *options) apply(spec *space.NodeSpec) (err error) {
	spec.Group, spec.Volatile = string(o.group), o.volatile
	if spec.Gate.Debounce, err = durationOf("debounce", o.debounce); err != nil {
		return err
	}
	if o.maxWait == "none" {
		spec.Gate.MaxWait = -1
	} else if spec.Gate.MaxWait, err = durationOf("max_wait", o.maxWait); err != nil {
		return err
	}
	if spec.Gate.Throttle, err = durationOf("throttle", o.throttle); err != nil {
		return err
	}
	for _, l := range []struct {
		what string
		list *starlark.List
		to   *[]space.Address
	}{{"writes", o.writes, &spec.Writes}, {"envelope", o.envelope, &spec.Envelope}, {"reads", o.reads, &spec.DeclaredReads}} {
		if *l.to, err = addresses(l.what, l.list); err != nil {
			return err
		}
	}
	return nil
}

func addresses(what string, list *starlark.List) (out []space.Address, err error) {
	if list == nil {
		return nil, nil
	}
	for i := range list.Len() {
		x, ok := list.Index(i).(*value.Place)
		if !ok {
			return nil, fmt.Errorf("%s must be a list of places, such as [stats, alarms[\"x\"]], but contains %s", what, meter.Article(list.Index(i).Type()))
		}
		out = append(out, space.Address{Space: x.Space, Doc: x.Doc, Path: x.Path})
	}
	return out, nil
}

// durationOf reads a duration such as "100ms", "24h" or "7d"; "" is 0.
func durationOf(what string, s starlark.String) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	text := string(s)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: %q is not a duration; write it like \"100ms\", \"90s\", \"24h\" or \"7d\"", what, meter.Clip(text))
	}
	return d, nil
}

// taskView returns a task as a program sees it.
func taskView(t space.Task) starlark.Value {
	fields := []model.Field{model.F("attempts", t.Attempts), model.F("error", t.Err)}
	for _, f := range []model.Field{{Key: "input", Value: t.In}, {Key: "output", Value: t.Out}} {
		if f.Value.IsAbsent() {
			f.Value = model.Null()
		}
		fields = append(fields, f)
	}
	fields = append(fields, model.F("key", t.Key), model.F("state", string(t.State)))
	return &value.View{Closed: "a task", V: model.Object(fields...)}
}
