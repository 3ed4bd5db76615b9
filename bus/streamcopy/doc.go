// Package streamcopy copies the streams of a deployment as they are stored, and restores them with their
// sequences. Package internal/backup makes backups of it.
package streamcopy
