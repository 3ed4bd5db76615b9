// Package docs_test compares the pages of this directory, and the README, with the code.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Code in a page is compiled and run: every block occurs in some file of the repository, except for indentation
// and blank lines. A line of three dots is an omission. The blocks of starlark.md, workflows.md and schedules.md are programs, which a
// test of program/star runs.
func TestPages_TheirCodeIsCompiledAndRun(t *testing.T) {
	goFiles, starFiles := filesOf(t, ".go"), filesOf(t, ".star")
	all := append(append(pages(t, "."), pages(t, "../examples")...), "../README.md", "../AGENTS.md")
	for _, page := range all {
		text := read(t, page)
		stands(t, page, goFiles, blocks(text, "go"))
		if page != "starlark.md" && page != "workflows.md" && page != "schedules.md" {
			stands(t, page, starFiles, blocks(text, "python"))
		}
	}
}

// stands reports blocks of a page that occur in none of the files.
func stands(t *testing.T, page string, files, blocks []string) {
	t.Helper()
	for n, block := range blocks {
		for _, part := range parts(block) {
			if !slices.ContainsFunc(files, func(src string) bool { return strings.Contains(src, part) }) {
				t.Errorf("%s: block %d is in no file:\n%s", page, n+1, part)
			}
		}
	}
}

// Links to other pages, and to sections of them, have targets.
func TestPages_TheirLinksLeadSomewhere(t *testing.T) {
	for _, page := range append(pages(t, "."), "../README.md", "../ARCHITECTURE.md", "../CONTRIBUTING.md", "../AGENTS.md", "../deploy/README.md") {
		prose, _ := split(read(t, page))
		for _, target := range links(inlineCode.ReplaceAllString(prose, "code")) {
			path, section, _ := strings.Cut(target, "#")
			path = filepath.Join(filepath.Dir(page), path)
			if strings.HasPrefix(target, "#") {
				path = page
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: there is no %s", page, target)
				continue
			}
			if section != "" && strings.HasSuffix(path, ".md") && !slices.Contains(sections(t, path), section) {
				t.Errorf("%s: %s has no section %s", page, path, section)
			}
		}
	}
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// sections returns the names by which links reach the headings of a page.
func sections(t *testing.T, path string) (found []string) {
	t.Helper()
	prose, _ := split(read(t, path))
	for line := range strings.Lines(prose) {
		if hashes, title, ok := strings.Cut(strings.TrimSpace(line), " "); ok && hashes != "" && strings.Trim(hashes, "#") == "" {
			found = append(found, strings.ReplaceAll(strings.ToLower(notInSlug.ReplaceAllString(title, "")), " ", "-"))
		}
	}
	return found
}

func pages(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") && !strings.Contains(path, "adr") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// filesOf returns the repository's files of a kind, as their lines.
func filesOf(t *testing.T, kind string) (texts []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(path, kind):
			texts = append(texts, normal(read(t, path)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// blocks returns the fenced blocks of a language.
func blocks(text, language string) (found []string) {
	for _, rest := range strings.Split("\n"+text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "\n```")
		found = append(found, block)
	}
	return found
}

// parts returns what stands between lines of three dots.
func parts(block string) (found []string) {
	for part := range strings.SplitSeq("\n"+normal(block), "\n...\n") {
		if part = strings.TrimPrefix(part, "\n"); strings.TrimSpace(part) != "" {
			found = append(found, part)
		}
	}
	return found
}

// normal returns a text without indentation and blank lines.
func normal(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// links returns the targets of links to files and to sections.
func links(text string) (found []string) {
	for _, rest := range strings.Split(text, "](")[1:] {
		target, _, ok := strings.Cut(rest, ")")
		if ok && target != "" && !strings.Contains(target, "://") && !strings.ContainsAny(target, " \n\"") {
			found = append(found, target)
		}
	}
	return found
}
