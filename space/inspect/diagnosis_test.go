package inspect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func wantMarkers(t *testing.T, d *diagnosis, want ...string) {
	t.Helper()
	var got []string
	for _, m := range d.markers() {
		got = append(got, m.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("markers\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestE14_APassThatDeferredNothingLeavesNoMarker(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	if d.deferred(1, nil) || d.deferred(2, []string{}) || d.deferring {
		t.Error("deferring is set after a clean pass")
	}
	wantMarkers(t, d)
}

func TestE15_MarkersCountAndNameDeferredNodes(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	if !d.deferred(1, []string{"x"}) {
		t.Error("the first marker does not warn")
	}
	if d.deferred(2, []string{"y", "x"}) {
		t.Error("the second marker of the episode warns again")
	}
	if !d.deferring {
		t.Error("not deferring, although the last pass deferred something")
	}
	wantMarkers(t, d, "pass 1 deferred 1: x", "pass 2 deferred 2: y, x")
}

func TestE15_ACleanPassEndsTheEpisodeAndKeepsItsMarkers(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.deferred(1, []string{"x"})
	d.deferred(2, nil)
	if d.deferring {
		t.Error("deferring after a clean pass")
	}
	if !d.deferred(3, []string{"x"}) {
		t.Error("a new episode does not warn")
	}
	wantMarkers(t, d, "pass 1 deferred 1: x", "pass 3 deferred 1: x")
}

func TestE15_AMarkerNamesTenNodesAndCountsTheRest(t *testing.T) {
	for _, c := range []struct {
		nodes int
		want  string
	}{
		{10, "pass 1 deferred 10: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9"},
		{11, "pass 1 deferred 11: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 1 more"},
		{500, "pass 1 deferred 500: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 490 more"},
	} {
		var nodes []string
		for i := range c.nodes {
			nodes = append(nodes, fmt.Sprint("n", i))
		}
		d := newDiagnosis(diagnosisSettings{})
		d.deferred(1, nodes)
		wantMarkers(t, d, c.want)
	}
}

// The caller reuses one slice in every pass, and a reader may keep the history.
func TestE15_MarkersShareNothingWithTheirCallers(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{history: 1})
	nodes := []string{"x"}
	d.deferred(1, nodes)
	nodes[0] = "changed"
	kept := d.markers()
	d.deferred(2, nodes)
	if got := kept[0].String(); got != "pass 1 deferred 1: x" {
		t.Errorf("the marker became %q", got)
	}
}

func TestE15_TheHistoryKeepsTheLatestMarkers(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	warnings := 0
	for pass := range uint64(200) {
		if d.deferred(pass, []string{"x"}) {
			warnings++
		}
	}
	all := d.markers()
	if len(all) != 64 || all[0].pass != 136 || all[63].pass != 199 {
		t.Errorf("%d markers from %v to %v, want 64 from 136 to 199", len(all), all[0], all[len(all)-1])
	}
	if warnings != 1 {
		t.Errorf("%d warnings in one episode", warnings)
	}
}

// busySeconds reports passes that take the given time of every second, at the ends of the seconds after from,
// and returns the seconds that produced a warning.
func busySeconds(d *diagnosis, from, seconds int, took time.Duration) (warned []int) {
	for i := range seconds {
		at := from + i + 1
		if d.busy(time.Duration(at)*time.Second, took) {
			warned = append(warned, at)
		}
	}
	return warned
}

func wantWarned(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("warned at %v, want %v", got, want)
	}
}

func TestU04_ABusyStretchMakesOneMarker(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	// The window begins with the first pass, at 0.5 s. At 5 s it is not long enough.
	wantWarned(t, busySeconds(d, 0, 600, 500*time.Millisecond), 6)
	wantMarkers(t, d, "busy for 3s of 5.5s until 6s")
}

func TestU04_ALongPassAloneIsABusyStretch(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	if !d.busy(time.Hour, 6*time.Second) {
		t.Error("six seconds of uninterrupted work do not warn")
	}
	wantMarkers(t, d, "busy for 6s of 6s until 1h0m0s")
}

func TestU04_EachLimitIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings diagnosisSettings
		window   time.Duration // idle until the last pass
		took     time.Duration
		want     bool
	}{
		{"all three", diagnosisSettings{}, 5*time.Second + 10, 1500*time.Millisecond + 4, true},
		{"the window is 5 s and not longer", diagnosisSettings{}, 5 * time.Second, 4 * time.Second, false},
		{"the ratio is 0.3 and not more", diagnosisSettings{}, 10 * time.Second, 3 * time.Second, false},
		{"a nanosecond more", diagnosisSettings{}, 10 * time.Second, 3*time.Second + 1, true},
		{"busy for 1 s and not more", diagnosisSettings{busyPercent: 10}, 6 * time.Second, time.Second, false},
		{"a nanosecond more than that", diagnosisSettings{busyPercent: 10}, 6 * time.Second, time.Second + 1, true},
	} {
		d := newDiagnosis(c.settings)
		d.busy(0, 0)
		if got := d.busy(c.window, c.took); got != c.want {
			t.Errorf("%s: %v of %v warns %v", c.name, c.took, c.window, got)
		}
	}
}

func TestU04_AQuietSpaceLeavesNoMarker(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	wantWarned(t, busySeconds(d, 0, 1000, 200*time.Millisecond))
	wantMarkers(t, d)
}

func TestU04_BeyondTenSecondsTheWindowSlidesAndTheBusyTimeHalves(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.busy(0, 0)
	d.busy(10*time.Second, 2*time.Second)
	if d.load.start != 0 || d.load.busy != 2*time.Second {
		t.Errorf("at 10 s: %+v, which has slid", d.load)
	}
	d.busy(12*time.Second, 0)
	if d.load.start != 6*time.Second || d.load.busy != time.Second {
		t.Errorf("at 12 s: %+v, want 1s busy since 6s", d.load)
	}
}

func TestU04_ANewEpisodeAfterACalmOneWarnsAgain(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	wantWarned(t, busySeconds(d, 0, 30, 800*time.Millisecond), 6)
	wantWarned(t, busySeconds(d, 30, 60, time.Millisecond))
	if again := busySeconds(d, 90, 30, 800*time.Millisecond); len(again) != 1 {
		t.Errorf("the second episode warns at %v, want once", again)
	}
}

// Four seconds of work and an hour of calm: halving the busy time once while cutting the window to its usual
// length would result in 2 s of 5 s.
func TestU04_AnHourOfCalmIsNotForgottenAtOnce(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.busy(4*time.Second, 4*time.Second)
	wantWarned(t, busySeconds(d, 3600, 1, time.Millisecond))
	if w := 3601*time.Second - d.load.start; w > 10*time.Second {
		t.Errorf("the window is %v", w)
	}
	wantWarned(t, busySeconds(d, 3601, 60, time.Millisecond))
}

// Between two slides the load crosses the limit five times.
func TestU04_ALoadThatHoversAroundTheLimitIsOneEpisode(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	warned := 0
	d.busy(0, 0)
	for i := range 5 {
		at := 6*time.Second + time.Duration(i)*700*time.Millisecond
		for _, busy := range []bool{true, false} {
			took := at*31/100 - d.load.busy
			if !busy {
				at, took = at+300*time.Millisecond, 0
			}
			if d.busy(at, took) {
				warned++
			}
			if d.settings.high(d.load.busy, at) != busy {
				t.Fatalf("%v of %v", d.load.busy, at)
			}
		}
	}
	if warned != 1 {
		t.Errorf("%d warnings", warned)
	}
}

func TestU04_BothKindsOfMarkersShareOneHistory(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.deferred(1, []string{"x"})
	d.busy(6*time.Second, 6*time.Second)
	d.deferred(2, []string{"x"})
	wantMarkers(t, d, "pass 1 deferred 1: x", "busy for 6s of 6s until 6s", "pass 2 deferred 1: x")
}

func TestADiagnosisThatIsSwitchedOffOrAtRestCostsNothing(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	pass := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		pass++
		d.deferred(pass, nil)
		d.busy(time.Duration(pass)*time.Second, time.Millisecond)
		d.caused("a", "c", "b")
		d.circles()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if d.causes != nil || len(d.history) != 0 {
		t.Error("something is kept")
	}
}

// tracedCauses returns a diagnosis that has seen edges, each given as "writer document reader".
func tracedCauses(edges ...string) *diagnosis {
	d := newDiagnosis(diagnosisSettings{})
	d.traceCauses(true)
	for _, e := range edges {
		f := strings.Fields(e)
		d.caused(f[0], f[1], f[2])
	}
	return d
}

// spelledCircles joins circles for comparison.
func spelledCircles(circles [][]string) string {
	var lines []string
	for _, c := range circles {
		lines = append(lines, strings.Join(c, " "))
	}
	return strings.Join(lines, "; ")
}

func TestS10_ACausalCircleIsReported(t *testing.T) {
	for _, c := range []struct {
		name  string
		edges []string
		want  string
	}{
		{"nothing", nil, ""},
		{"the row", []string{"A c B", "B d A"}, "A c B d"},
		{"seen many times", []string{"A c B", "B d A", "A c B", "B d A", "A c B"}, "A c B d"},
		{"begun elsewhere", []string{"B d A", "A c B"}, "A c B d"},
		{"a chain is none", []string{"A a B", "B b C", "C c D"}, ""},
		{"a diamond is none", []string{"A a B", "A a C", "B b D", "C c D"}, ""},
		{"one node", []string{"A a A"}, "A a"},
		{"two documents, one circle", []string{"A e B", "A c B", "B d A"}, "A c B d"},
		{"a tail before and behind", []string{"T t A", "A c B", "B d A", "B d Z"}, "A c B d"},
		{"two apart", []string{"C c D", "D d C", "A a B", "B b A"}, "A a B b; C c D d"},
		{"joined by a bridge", []string{"A a B", "B b A", "B x C", "C c D", "D d C"}, "A a B b; C c D d"},
		{"two that share a node", []string{"A a B", "B b A", "B b C", "C c B"}, "A a B b; C c B b"},
		{"the shortest", []string{"A a B", "B b C", "C c D", "D d A", "C s A"}, "A a B b C s; D d A a B b C c"},
		{"one document of two writers is no bridge", []string{"A c B", "D c A", "B b E"}, ""},
		{"long", []string{"E e A", "D d E", "C c D", "B b C", "A a B"}, "A a B b C c D d E e"},
	} {
		if got := spelledCircles(tracedCauses(c.edges...).circles()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestS10_AnEventIsNoPartOfACircle(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.traceCauses(true)
	d.caused("", "c", "B")
	d.caused("B", "d", "")
	if got := d.circles(); got != nil {
		t.Errorf("circles %v", got)
	}
}

func TestS10_NothingIsRecordedWhileSwitchedOff(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	record := func() { d.caused("A", "c", "B"); d.caused("B", "d", "A") }
	record()
	d.traceCauses(true)
	if got := d.circles(); got != nil {
		t.Errorf("what came before it was switched on is there: %v", got)
	}
	record()
	d.traceCauses(true)
	if got := d.circles(); got != nil {
		t.Errorf("switching on does not begin anew: %v", got)
	}
	record()
	d.traceCauses(false)
	if got := d.circles(); got != nil {
		t.Errorf("what was switched off is there: %v", got)
	}
}

// The edges of a circle are seen again and again, while those that are seen only once are evicted.
func TestS10_TheEdgesAreBoundedAndACircleStays(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{edges: 3})
	d.traceCauses(true)
	for i := range 100 {
		d.caused("A", "c", "B")
		d.caused("B", "d", "A")
		d.caused("once", fmt.Sprint("d", i), fmt.Sprint("n", i))
		if n, m := d.causes.recent.Len(), len(d.causes.at); n != 3 || m != 3 {
			t.Fatalf("%d edges in the list and %d in the map, want 3", n, m)
		}
		if got := spelledCircles(d.circles()); got != "A c B d" {
			t.Fatalf("circles %q", got)
		}
	}
}

// The search must be neither quadratic nor overflow the stack at the size of the table.
func TestS10_AChainAsLongAsTheTableIsSearched(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.traceCauses(true)
	name := func(i int) string { return fmt.Sprintf("n%05d", i) }
	for i := range 4095 {
		d.caused(name(i), "d", name(i+1))
	}
	if got := d.circles(); got != nil {
		t.Fatalf("%d circles in a chain", len(got))
	}
	d.caused(name(4095), "d", name(0))
	if got := d.circles(); len(got) != 1 || len(got[0]) != 2*4096 || got[0][0] != name(0) {
		t.Errorf("%d circles, want one of 4096 nodes", len(got))
	}
}

// Each of 60 nodes leads to the next by two edges, so there are 2 to the 60 circles.
func TestS10_ManyWaysAroundAreNotTriedOneByOne(t *testing.T) {
	d := newDiagnosis(diagnosisSettings{})
	d.traceCauses(true)
	name := func(i int) string { return fmt.Sprintf("n%02d", i%60) }
	for i := range 60 {
		for _, by := range []string{"x", "y"} {
			d.caused(name(i), "d", by+name(i))
			d.caused(by+name(i), "d", name(i+1))
		}
	}
	circles := d.circles()
	if len(circles) != 61 {
		t.Errorf("%d circles, want one, and one for each node outside it", len(circles))
	}
	for _, c := range circles {
		if len(c) != 2*120 {
			t.Errorf("a circle of %d nodes, want 120", len(c)/2)
		}
	}
}

func TestS10_ComponentsAreMutuallyReachableNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 7
		next := make([][]causalStep, n)
		var edges []causalEdge
		names := strings.Fields("0 1 2 3 4 5 6")
		for range rapid.IntRange(0, 12).Draw(t, "edges") {
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			next[from] = append(next[from], causalStep{to: to})
			edges = append(edges, causalEdge{writer: names[from], reader: names[to]})
		}
		part, dist := causalComponents(next), causalDistances(edges, names)
		for a := range n {
			for b := range n {
				both := dist[[2]string{names[a], names[b]}] < 99 && dist[[2]string{names[b], names[a]}] < 99
				if together := part[a] == part[b]; together != (a == b || both) {
					t.Fatalf("%d and %d are in one component: %v", a, b, together)
				}
			}
		}
	})
}

// causalDistances returns the lengths of the shortest paths between any two nodes, at least one step long, by
// trying every node as an intermediate (Floyd and Warshall); 99 means none.
func causalDistances(edges []causalEdge, names []string) map[[2]string]int {
	dist := map[[2]string]int{}
	for _, a := range names {
		for _, b := range names {
			dist[[2]string{a, b}] = 99
		}
	}
	for _, e := range edges {
		dist[[2]string{e.writer, e.reader}] = 1
	}
	for _, k := range names {
		for _, a := range names {
			for _, b := range names {
				dist[[2]string{a, b}] = min(dist[[2]string{a, b}], dist[[2]string{a, k}]+dist[[2]string{k, b}])
			}
		}
	}
	return dist
}

// checkCircle checks that c is elementary and made of edges, and returns its nodes.
func checkCircle(t *rapid.T, edges []causalEdge, c []string) (nodes []string) {
	for i := 0; i < len(c); i += 2 {
		if slices.Contains(nodes, c[i]) {
			t.Fatalf("%v passes %s twice", c, c[i])
		}
		nodes = append(nodes, c[i])
		if e := (causalEdge{c[i], c[i+1], c[(i+2)%len(c)]}); !slices.Contains(edges, e) {
			t.Fatalf("%v has %v, which was not recorded", c, e)
		}
	}
	return nodes
}

func TestS10_EachNodeOnACircleIsOnAReportedOneAndNoOtherIs(t *testing.T) {
	names := strings.Fields("A B C D E F")
	rapid.Check(t, func(t *rapid.T) {
		node := rapid.SampledFrom(names)
		edges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) causalEdge {
			return causalEdge{node.Draw(t, "writer"), rapid.SampledFrom([]string{"c", "d"}).Draw(t, "doc"), node.Draw(t, "reader")}
		}), 0, 14).Draw(t, "edges")
		record := func(edges []causalEdge) [][]string {
			d := newDiagnosis(diagnosisSettings{})
			d.traceCauses(true)
			for _, e := range edges {
				d.caused(e.writer, e.doc, e.reader)
			}
			return d.circles()
		}
		circles, dist := record(edges), causalDistances(edges, names)
		listed := map[string]bool{}
		first := ""
		for _, c := range circles {
			nodes := checkCircle(t, edges, c)
			if len(nodes) != dist[[2]string{c[0], c[0]}] {
				t.Fatalf("%v is not the shortest through %s", c, c[0])
			}
			if listed[c[0]] || c[0] <= first {
				t.Fatalf("%v begins with a node that was listed already, or is out of order", c)
			}
			first = c[0]
			for _, n := range nodes {
				listed[n] = true
			}
		}
		for _, n := range names {
			if on := dist[[2]string{n, n}] < 99; on != listed[n] {
				t.Fatalf("%s is on a circle: %v, listed: %v", n, on, listed[n])
			}
		}
		if again := record(rapid.Permutation(edges).Draw(t, "order")); spelledCircles(again) != spelledCircles(circles) {
			t.Fatalf("in another order the circles are %v, not %v", again, circles)
		}
	})
}
