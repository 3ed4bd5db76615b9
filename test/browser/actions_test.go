package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/settlehq/settle/gateway"
)

// The form has the fields of the schema. What it sends is handled once, and the page says with what result; what is wrong is refused before it is sent.
func TestSend_AFormMadeOfTheSchema(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces/rome?stream=order")
	if got := eval[[]string](b, `[...document.querySelectorAll("#send [name^='f.']")].map((e) => e.name + " " + e.type)`); strings.Join(got, ", ") != "f.gift checkbox, f.item text, f.note text, f.pieces text" {
		t.Errorf("the form has the fields %v", got)
	}
	b.fill("#f-item", "desk")
	b.fill("#f-pieces", "4")
	b.click(`[name="f.gift"]`)
	b.click("#send form details summary")
	b.fill("#sendid", "browser-1")
	b.submit("#send .primary")
	b.untilText(".notice", "Event order browser-1 was handled, with the result 2")
	b.untilText("#documents", "orders 2")
	b.to("/spaces/rome?stream=order")
	b.fill("#f-item", "desk")
	b.fill("#f-pieces", "4")
	b.click("#send form details summary")
	b.fill("#sendid", "browser-1")
	b.submit("#send .primary")
	b.untilText(".notice", "had been sent before")
	b.untilText("#documents", "orders 2")
	b.allow("status of 400")
	b.fill("#f-item", "desk")
	b.fill("#f-pieces", "many")
	b.submit("#send .primary")
	b.untilText("main", "\"many\" is no number")
	b.untilText("main", "Nothing was sent")
	b.to("/spaces/rome?stream=refuse")
	b.submit("#send .primary")
	b.untilText(".notice", "<b>we</b> do not sell that")
	b.to("/spaces/rome?stream=order")
	b.fill("#f-item", "desk")
	b.fill("#f-pieces", "0")
	b.submit("#send .primary")
	b.untilText(".notice", "an order is for one piece at least")
}

// What is written in a form stays, with the focus, while the page changes around it.
func TestSend_TypingIsNotDisturbed(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces/rome?stream=order")
	b.live()
	b.fill("#f-note", "half a sen")
	w.send("rome", "order", "", map[string]any{"item": "lamp", "pieces": 1})
	b.untilText("#documents", "orders 2")
	b.press("tence")
	if got := eval[string](b, `document.activeElement.id + " " + document.activeElement.value`); got != "f-note half a sentence" {
		t.Errorf("the field is %q", got)
	}
}

// Observe is demand: the document is computed and kept up to date. Stop ends that.
func TestObserve_TheSwitch(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces/rome/documents/summary")
	b.untilText("h1", "was not computed")
	b.submit(`form[action="/-/do/observe"] button`)
	b.untilText(".notice", "summary is observed until")
	b.untilText("h1", "summary is")
	b.until(`document.querySelector("#value").innerText.includes('"orders": 1')`)
	w.send("rome", "order", "", map[string]any{"item": "lamp", "pieces": 1})
	b.until(`document.querySelector("#value").innerText.includes('"orders": 2')`)
	b.submit(`form[action="/-/do/observe"] button`)
	b.untilText(".notice", "is not observed by this console any more")
	b.untilText("#source", "nothing reads it")
}

// A node of the picture leads to why it is as it is. The picture does not move when values change, and what has run is marked.
func TestGraph_ANodeSaysWhyAndNothingMoves(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces/rome/documents/summary")
	b.submit(`form[action="/-/do/observe"] button`)
	b.to("/spaces/rome/graph")
	b.live()
	b.untilText("#nodes", "summary")
	const places = `JSON.stringify([...document.querySelectorAll("svg.graph g[id]")].map((g) => g.id + g.getAttribute("transform") + g.querySelector(".name").textContent))`
	before := eval[string](b, places)
	w.send("rome", "order", "", map[string]any{"item": "lamp", "pieces": 1})
	b.untilText("h1", "ran")
	b.until(`document.querySelectorAll("svg.graph .box.ran").length > 1`)
	if after := eval[string](b, places); after != before {
		t.Errorf("the picture has moved: %s, and was %s", after, before)
	}
	eval[bool](b, `[...document.querySelectorAll("svg.graph a")].find((a) => a.textContent.includes("value")).dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`)
	b.untilText("#why", "Why value")
	b.untilText("#why", "because")
	if got := eval[string](b, places); got != before {
		t.Errorf("the picture has moved: %s, and was %s", got, before)
	}
	b.click("#why .whyhead a")
	b.until(`!document.querySelector("#why aside")`)
}

// A graph of more than 300 nodes shows the part around one of them, and leads to the others.
func TestGraph_ALargeOneShowsAPart(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces/wide/documents/all")
	b.submit(`form[action="/-/do/observe"] button`)
	b.untilText("h1", "all is 4")
	b.to("/spaces/wide/graph")
	b.untilText("#summary", "within two arrows")
	if n := eval[int](b, `document.querySelectorAll("svg.graph g[id]").length`); n < 3 || n > 300 {
		t.Errorf("%d nodes are drawn", n)
	}
	b.to("/spaces/wide/graph?why=shelf-3-7")
	b.untilText("#why", "Why shelf-3-7")
	b.until(`document.querySelector("svg.graph .box.sel")`)
	b.until(`document.querySelectorAll("svg.graph g[id]").length > 20`)
}

// All keys do what the page about them says.
func TestKeys(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/")
	b.live()
	b.key("g")
	b.key("s")
	b.until(`location.pathname === "/spaces" && document.readyState === "complete"`)
	b.live()
	b.key("j")
	first := eval[string](b, `document.querySelector(".here").id`)
	b.key("j")
	second := eval[string](b, `document.querySelector(".here").id`)
	b.key("k")
	if again := eval[string](b, `document.querySelector(".here").id`); first == second || again != first {
		t.Errorf("j, j, k lead to %s, %s, %s", first, second, again)
	}
	b.key("/")
	if got := eval[string](b, `document.activeElement.id`); got != "find" {
		t.Errorf("/ leads to %q", got)
	}
	b.press("rom" + kb.Enter)
	b.until(`location.search.includes("q=rom") && document.readyState === "complete"`)
	b.live()
	b.key("j")
	b.press(kb.Enter)
	b.until(`location.pathname === "/spaces/rome" && document.readyState === "complete"`)
	b.live()
	b.key("p")
	b.untilText("#live", "paused")
	b.untilStreams(0)
	b.key("p")
	b.live()
	b.key("c")
	b.untilText("#copycli", "Copied")
	b.key("j")
	b.key("?")
	b.until(`location.pathname === "/-/help" && document.readyState === "complete"`)
	b.click("#keys")
	b.key("?")
	b.to("/spaces")
	b.key("j")
	if eval[bool](b, `!!document.querySelector(".here")`) {
		t.Error("the keys are off, and j has an effect")
	}
}

// The theme is that of the system until the visitor chooses one.
func TestTheme(t *testing.T) {
	w := start(t, 0, gateway.Config{})
	b := w.open()
	const ground = `getComputedStyle(document.body).getPropertyValue("--ground").trim()`
	b.theme("light")
	b.to("/spaces")
	light := eval[string](b, ground)
	b.submit(`button[value="dark"]`)
	dark := eval[string](b, ground)
	if light == dark || b.path() != "/spaces" {
		t.Errorf("the ground was %s, and is %s, at %s", light, dark, b.path())
	}
	b.submit(`button[value="system"]`)
	if got := eval[string](b, ground); got != light {
		t.Errorf("the ground is %s", got)
	}
	b.theme("dark")
	if got := eval[string](b, ground); got != dark {
		t.Errorf("the ground is %s where the system is dark", got)
	}
	b.submit(`button[value="light"]`)
	if got := eval[string](b, ground); got != light {
		t.Errorf("the ground is %s where the visitor wants it light", got)
	}
}

// A console with principals asks for a token; a visitor sees and sends what its entry allows, until it signs out.
func TestLogin(t *testing.T) {
	w := start(t, 1, gateway.Config{Principals: principals(t, `alice ,"read":["rome/*"],"send":["rome/order"]`)})
	w.fill()
	b := w.open()
	b.allow("status of 401", "status of 403")
	b.to("/spaces/rome")
	b.untilText("h1", "needs a token")
	b.fill("#secret", "mallory")
	b.submit("form .primary")
	b.untilText("main", "not accepted")
	b.fill("#secret", "alice")
	b.submit("form .primary")
	b.untilText("#documents", "orders 1")
	b.live()
	if got := eval[string](b, `document.cookie`); got != "" {
		t.Errorf("a script can read the cookies %q", got)
	}
	if got := b.text("#streams"); got != "order" {
		t.Errorf("alice may send %q", got)
	}
	b.to("/spaces/oslo")
	b.untilText("main", "no document of space oslo")
	b.to("/spaces")
	b.untilText("#list", "rome")
	if strings.Contains(b.text("#list"), "oslo") {
		t.Error("the list has a space that alice may not see")
	}
	b.submit(`form[action="/-/logout"] button`)
	b.untilText("h1", "needs a token")
	b.to("/spaces/rome")
	b.untilText("h1", "needs a token")
}
