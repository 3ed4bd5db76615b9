// Package harness has what benchmarks of other engines need: servers in processes of their own, processes that are
// measured, and the record of what was measured.
package harness
