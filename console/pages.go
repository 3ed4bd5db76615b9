package console

// allPages returns the pages, those of the navigation in its order.
func allPages() []page {
	return append([]page{
		overviewPage(),
		spacesPage(),
	}, operatingPages()...)
}

// allActions returns the actions.
func allActions() []action {
	return append([]action{
		observeAction(),
	}, operatingActions()...)
}
