// Package browser tests the console in Chromium: each page and action, live changes under load, what a page shows while a worker or the console
// itself is killed, the rules of accessibility of axe-core at three widths, and that no page reports an error.
//
// It is a module of its own, so that go test ./... of Settle needs no browser. It needs Debian's package chromium (or another Chromium or Chrome in
// the path, or in CHROMIUM), and npm ci for axe-core:
//
//	cd test/browser && npm ci && go test ./...
//
// SHOTS names a directory for a picture of each page that a test opens.
package browser
