// Package star hosts programs that are written in Starlark.
package star
