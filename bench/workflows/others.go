//go:build !counts

package workflows

func init() { others = []Engine{goWorkflows{}, temporal{}, dbosEngine{}} }
