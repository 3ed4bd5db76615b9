package compile

import (
	"fmt"
	"testing"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/workflow"
)

const pipeline = `
load("actions", "aggregate_chunk", "fetch_items", "finalize", "process_item", "validate_chunk")

def run(fan_out = 8, loop_iters = 4):
    items = fetch_items(count = fan_out)
    processed = parallel([process_item(item = it) for it in items])
    chunk_size = len(processed) // loop_iters
    results = []
    for chunk_id in range(loop_iters):
        chunk = processed[chunk_id * chunk_size:(chunk_id + 1) * chunk_size]
        is_valid = validate_chunk(chunk_id = chunk_id, items = chunk)
        chunk_result = aggregate_chunk(chunk_id = chunk_id, items = chunk, is_valid = is_valid)
        results.append(chunk_result)
    return finalize(results = results)

workflow("data_pipeline", run)
`

// inStarlark returns actions that are written in Starlark.
func inStarlark(t *testing.T, src string) deeds {
	t.Helper()
	globals, err := starlark.ExecFileOptions(workflow.Dialect(), &starlark.Thread{}, "actions.star", src, workflow.Builtins())
	if err != nil {
		t.Fatal(err)
	}
	d := deeds{}
	for name, v := range globals {
		d[name] = func(args starlark.Tuple, named starlark.StringDict) (starlark.Value, error) {
			var kw []starlark.Tuple
			for k, v := range named {
				kw = append(kw, starlark.Tuple{starlark.String(k), v})
			}
			return starlark.Call(&starlark.Thread{}, v, args, kw)
		}
	}
	return d
}

func TestPipeline_ComesToWhatTheOriginalDoes(t *testing.T) {
	d := inStarlark(t, `
def fetch_items(count): return [{"id": i, "value": "item_%d" % i} for i in range(count)]
def process_item(item): return {"id": item["id"], "hash": "hash_%d" % item["id"], "score": item["id"] * 10}
def validate_chunk(chunk_id, items): return all([item["score"] > 0 for item in items])
def aggregate_chunk(chunk_id, items, is_valid): return {"chunk_id": chunk_id, "total": sum_of([i["score"] for i in items]) if is_valid else 0}
def finalize(results): return sum_of([r["total"] for r in results])
def sum_of(list):
    n = 0
    for x in list:
        n += x
    return n
`)
	for _, c := range []struct {
		fan, iters, want, actions int
	}{{8, 4, 270, 18}, {16, 8, 1190, 34}, {0, 4, 0, 10}, {3, 8, 0, 21}, {9, 4, 270, 19}} {
		got := same(t, pipeline, fmt.Sprintf(`{"fan_out":%d,"loop_iters":%d}`, c.fan, c.iters), d)
		if got.result != fmt.Sprint(c.want) || len(got.log) != c.actions {
			t.Errorf("(%d, %d): %s after %d actions, want %d after %d", c.fan, c.iters, got.result, len(got.log), c.want, c.actions)
		}
	}
	if got := same(t, pipeline, `{"loop_iters":0}`, d); got.result != "error CodeError" {
		t.Errorf("a division by zero: %s", got.result)
	}
}

func TestPrograms_ComeToWhatTheInterpreterSays(t *testing.T) {
	d := inStarlark(t, `
def inc(x): return x + 1
def bad(x): return fail(error("BadError", "no"))
def small(x): return x < 3
def third(x): return x == 3
`)
	for _, src := range []string{
		"return inc(1)",
		"x = inc(n)\n    return x + 1",
		"x = 0\n    while x < n:\n        x = inc(x)\n    return x",
		"x = 0\n    while small(x):\n        x += 1\n    return x",
		"out = []\n    for i in range(n):\n        if i == 1: continue\n        if i == 4: break\n        for j in [i, i + 1]:\n            out.append(j)\n            y = inc(j)\n            if y > 4: break\n            out.append(y)\n    return out",
		"a, b = parallel(inc(1), helper(n))\n    return [a, b]",
		"return parallel([helper(i) for i in range(n) if i % 2])",
		"xs = [inc(i) for i in range(n) if i != 2]\n    return xs",
		"xs = [1]\n    ys = xs\n    y = inc(2)\n    xs.append(y)\n    return ys",
		"d = {}\n    for i in range(n):\n        d['k%d' % i] = inc(i)\n    d['k0'] += inc(d['k1'])\n    return d",
		"xs = [1, 2]\n    for x in xs:\n        y = inc(x)\n        xs.append(y)\n    return xs",
		"big = inc(n)\n    if big > 9:\n        return 'big'\n    elif small(n):\n        x = inc(0)\n    else:\n        x = inc(7)\n    return x",
		"for i in range(n):\n        if third(i):\n            return 'found:%d' % i\n    return None",
		"x = bad(n)\n    return x",
		"for i in range(n):\n        inc(i)",
		"y = inc(1.5)\n    z = inc(0)\n    return (1, y, None, True, 'é', 10 * z)[1:]",
		"sleep('1s')\n    t = inc(1)\n    sleep(0)\n    return t",
		"x = 1; y = inc(x); z = y + x\n    return z",
		"return retry(inc(n), attempts = 3, backoff = '1s')",
		"C = 1\n    x = inc(C) # comment\n    return {\n        'a': x,  # more\n        'b': [\n            x],\n    }",
		"t = CONST\n    y = inc(1)\n    t.append(y)\n    return t",
		"r = range(2, 9, 3)\n    y = inc(1)\n    return [e for e in r] + [y]",
		"f = sorted\n    y = inc(1)\n    return f([3, y])",
		"return twice(twice(1)) + PURE",
		"return {'a': inc(1), 'a': fail('the value comes before its key is refused')}",
		"return {'a': inc(1), 'a': 2, 'b': fail('the key is refused before the next entry')}",
	} {
		t.Run(src, func(t *testing.T) {
			text := "load('actions', 'inc', 'bad', 'small', 'third')\nCONST = [1]\nPURE = 3\ndef twice(x):\n    return x * 2\ndef helper(x):\n    y = inc(x)\n    if y > 3:\n        return y\n    return inc(y)\ndef run(n = 5):\n    " + src + "\nworkflow('w', run)\n"
			same(t, text, "{}", d)
		})
	}
}
