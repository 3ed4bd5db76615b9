package console

// allPages returns the pages, those of the navigation in its order.
func allPages() []page {
	return []page{
		overviewPage(),
		spacesPage(),
		spacePage(),
		documentPage(),
		graphPage(),
	}
}

// allActions returns the actions.
func allActions() []action {
	return []action{
		observeAction(),
		sendAction(),
	}
}
