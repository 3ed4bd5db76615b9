// Package docs holds no code, only tests of the pages in docs/: that what they say about the
// source is so. A figure in a page is compared with the constant or the default that it is
// about; a test that a page names exists; a link leads to a file.
//
// A figure that nobody compares is wrong after a while, and a reader who has found one such
// figure believes none of the others.
//
// # Figures
//
// Each row of a table in docs/limits.md ends in the place of its figure in the source:
// `model.MaxNameLen` is a constant, `space.Config.MaxLater` the default that package space
// gives to a field of that name. They are read from the syntax of the source, so that what is
// not exported can be named too. A row without such a place says `-`, and a limit that is
// exported must have a row.
//
// # Tests
//
// In docs/guarantees.md, `space.TestI1_…` is one or more tests of the package in space/ whose
// names begin so, and `space/testdata/scenarios/poison.txt` is a file.
package docs
