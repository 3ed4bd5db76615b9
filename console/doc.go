// Package console is the console of a deployment: pages that show what it does and why, and actions on it.
//
// Create one with New on a connection like that of the settle command, and serve it as gateway.Config.Pages. The gateway checks hosts, origins and
// tokens; the console asks gateway.VisitorOf what a visitor may see and do. It works on any deployment, and needs no worker in its process.
//
// # How a page is made
//
// A page (page.go) has a path, and a function that opens it for one address. That returns a view, whose load function reads what the page shows
// now: a title, which answers the page's question, the command that prints the same, and parts. A part is a template with its data, and an element
// of the page with an id. pages/NAME.html places the parts, and has their templates.
//
//	page.go       page, view, part; the requests for a page and for its stream of changes
//	pages.go      the list of all pages
//	hub.go        topic: what one page shows to all visitors with the same rights, rendered once
//	stream.go     server-sent events: parts that have changed since what the browser has
//	action.go     actions: preview, execution, audit trail
//	session.go    tokens of forms, notices, themes
//	render.go     templates and their functions
//	shared.go     what pages read of the deployment, each at most once at a time
//	memory.go     samples of the last hour
//	trees.go      trees of events, which several pages show
//
// A page is complete without a script. With it, assets/console.js opens the address of the page as a stream, in which the server sends each part that
// changes, and morphs the part into the page. A tab has one stream, and none while it is hidden. A load is shared by all consoles with the same
// address and rights; a slow one gets the newest version and misses those in between.
//
// Looking is free: loads read logs, saved states and snapshots. They hold no lease and load no space.
package console
