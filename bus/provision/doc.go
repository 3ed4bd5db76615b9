// Package provision creates the streams of a deployment, and checks the settings on which guarantees rest.
//
// Specs are the streams that a deployment needs, each with its rules: a setting, and what an altered one
// breaks. A Provisioner creates missing streams, but never one in place of a stream that existed
// once unless that is asked for (Lost). Bus embeds one.
package provision
