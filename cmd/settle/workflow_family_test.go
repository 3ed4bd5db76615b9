package main

import "testing"

const expedition = `
pack = action("pack")

def prepare(item):
    return pack(item = item)

packing = workflow("packing", prepare)

def run(items):
    first = child(packing, {"item": "tent"}, id = "tent")
    rest = parallel([child("packing", {"item": item}, space = "store") for item in items])
    return [first, rest]

workflow("expedition", run)
`

// The status of a run shows the run that has started it and those that it has started, and a list marks the latter.
func TestWorkflow_ParentsAndChildrenAreVisible(t *testing.T) {
	t.Parallel()
	hosting(t)
	program := file(t, t.TempDir(), "trip.star", expedition)
	want(t, 0, "deployed", "deploy", program, "--space", "*")
	eventually(t, "e1: started", "workflow", "start", "trip", "expedition", `{"items":["a","b"]}`, "--id", "e1")
	eventually(t, "child of trip/e1", "workflow", "list", "trip")
	want(t, 0, "e1: workflow expedition, running for | child tent in space trip: workflow packing, running | waits for child packing", "workflow", "status", "trip", "e1")
	want(t, 0, "tent: workflow packing, running for | child of run e1 in space trip | waits for action pack", "workflow", "status", "trip", "tent")
	want(t, 0, `"run":"tent" | "parent":"trip/e1"`, "workflow", "status", "trip", "tent", "--json")
	want(t, 0, "tent | packing | child of trip/e1", "workflow", "list", "trip")

	want(t, 1, "stream workflow-child-end of space trip is internal | nothing was stored", "send", "trip", "workflow-child-end", `{"run":"e1","state":"done","result":1}`, "--wait")

	want(t, 0, "handled", "send", "trip", "pack", `{"key":"trip/tent/0/0","out":"in a bag"}`, "--wait")
	eventually(t, "child of trip/e1", "workflow", "list", "store")
	want(t, 0, "child tent in space trip: workflow packing, done | in space store: workflow packing, running | in space store: workflow packing, running", "workflow", "status", "trip", "e1")
	want(t, 0, "e1: cancelled", "workflow", "cancel", "trip", "e1")
	eventually(t, "cancelled", "workflow", "list", "store", "--state", "cancelled")
	want(t, 0, `"children":[{ | "space":"store" | "state":"cancelled"`, "workflow", "status", "trip", "e1", "--json")
}

func TestWorkflow_AChildIsANodeOfItsOwnKind(t *testing.T) {
	t.Parallel()
	program := file(t, t.TempDir(), "trip.star", expedition)
	want(t, 0, "0  child packing | parallel child packing for each of items", "workflow", "graph", program, "expedition")
	want(t, 0, `[label="child packing", peripheries=2, style=filled, fillcolor="#e8dcff"]`, "workflow", "graph", program, "expedition", "--format", "dot")
	want(t, 0, `n0_0[["child packing"]]`, "workflow", "graph", program, "expedition", "--format", "mermaid")
	want(t, 0, `"kind": "child" | "child": "packing"`, "workflow", "graph", program, "expedition", "--format", "json")
}
