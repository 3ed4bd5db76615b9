package star

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// httpGet is http_get(url, headers = {}): the input of a task that asks for a document over HTTP.
func httpGet(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var url string
	var headers starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "url", &url, "headers?", &headers); err != nil {
		return nil, err
	}
	return httpRequest(b, "GET", url, starlark.None, headers)
}

// httpPost is http_post(url, body = None, headers = {}).
func httpPost(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var url string
	var body, headers starlark.Value = starlark.None, starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "url", &url, "body?", &body, "headers?", &headers); err != nil {
		return nil, err
	}
	return httpRequest(b, "POST", url, body, headers)
}

// httpRequest returns a request as `settle perform --http` wants it. Nothing is sent: a program has no network.
func httpRequest(b *starlark.Builtin, method, url string, body, headers starlark.Value) (starlark.Value, error) {
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		return nil, fmt.Errorf("%s: the url %.200q begins with neither https:// nor http://", b.Name(), url)
	}
	r := starlark.NewDict(4)
	for _, f := range []struct {
		name string
		v    starlark.Value
	}{{"method", starlark.String(method)}, {"url", starlark.String(url)}, {"body", body}, {"headers", headers}} {
		if f.v == starlark.None {
			continue
		}
		if err := r.SetKey(starlark.String(f.name), f.v); err != nil {
			return nil, err
		}
	}
	return r, nil
}
