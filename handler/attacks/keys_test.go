package attacks

import (
	"context"
	"net/http"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
)

const (
	visitShop = "GET /visit?app=shop&uri={uri}"
	forged    = visitShop + "&ip=203.0.113.5"
	bearerOf  = "\nAuthorization: Bearer "
)

// forgedWith returns a visit with a forged address for each line of headers.
func forgedWith(headers ...string) (requests []string) {
	for _, header := range headers {
		requests = append(requests, forged+"\n"+header)
	}
	return requests
}

// keyed returns visits with each key, with and without a forged address.
func keyed(keys ...string) (requests []string) {
	for _, key := range keys {
		requests = append(requests, forged+bearerOf+key, visitShop+bearerOf+key,
			"POST /visit"+bearerOf+key+"\n\n"+`{"app":"shop","uri":"{uri}","ip":"203.0.113.5"}`, "GET /counts?app=shop&uri={uri}"+bearerOf+key)
	}
	return requests
}

var keyAttacks = []attack{
	{
		name:   "an ip, no key",
		sent:   "`ip=` in a GET, percent-encoded, in a POST, one's own, nonsense, empty, with an empty `Authorization`",
		status: 403, says: "app shop accepts it only with a key of the scope assert",
		requests: append(forgedWith("Authorization:", "Authorization: Bearer", "Authorization: Bearer    ", "Cookie: session=1"),
			forged, visitShop+"&%69%70=203.0.113.5", "GET /visit?ip=203.0.113.5&uri={uri}&app=shop", visitShop+"&ip=127.0.0.1", visitShop+"&ip=::1",
			visitShop+"&ip=nonsense", visitShop+"&ip=203.0.113.5&visitor=alice", visitShop+"#&ip=203.0.113.5", visitShop+"&ip=", visitShop+"&ip=%zz",
			"POST /visit\n\n"+`{"app":"shop","uri":"{uri}","ip":"203.0.113.5"}`,
			"POST /visit\n\n"+`{"\u0069p":"203.0.113.5","app":"shop","uri":"{uri}"}`, "POST /visit\n\n"+`{"app":"shop","uri":"{uri}","ip":0}`),
	},
	{
		name:   "a visitor's id, no key",
		sent:   "`visitor=` to an app that knows visitors by ids, and to one that does not",
		status: 403, says: "accepts it only with a key of the scope assert",
		requests: []string{
			"GET /visit?app=ids&uri={uri}&visitor=alice", "GET /visit?app=shop&uri={uri}&visitor=alice",
			"GET /visit?app=hashed&uri={uri}&visitor=alice",
			"POST /visit\n\n" + `{"app":"ids","uri":"{uri}","visitor":"alice"}`, "GET /visit?app=ids&uri={uri}&visitor=alice" + bearerOf,
		},
	},
	{
		name:   "an ip in places that are not read",
		sent:   "`ip` in the query of a POST, the body of a GET, a header, a cookie, in upper case, as `ip[]`",
		status: 200, stores: "{page} 127.0.0.1",
		requests: []string{
			"POST /visit?ip=203.0.113.5\n\n" + `{"app":"shop","uri":"{uri}"}`, visitShop + "\n\n" + `{"ip":"203.0.113.5"}`,
			visitShop + "\nIP: 203.0.113.5", visitShop + "\nCookie: ip=203.0.113.5", visitShop + "&IP=203.0.113.5", visitShop + "&ip[]=203.0.113.5",
			visitShop + "&ip%00=203.0.113.5", visitShop + "&%20ip=203.0.113.5", visitShop + "&peer=203.0.113.5",
			visitShop + "\nX-HTTP-Method-Override: POST\n\n" + `{"app":"shop","uri":"{uri}","ip":"203.0.113.5"}`,
		},
	},
	{
		name:   "a key elsewhere than in Authorization",
		sent:   "a good key in the URL, in its user-info, in a cookie, in other headers",
		status: 403, says: "ip: app shop accepts it",
		requests: append(forgedWith("Cookie: key={assert}", "X-Api-Key: {assert}", "Proxy-Authorization: Bearer {assert}", "Bearer: {assert}"),
			forged+"&key={assert}", forged+"&token={assert}", forged+"&access_token={assert}", forged+"&authorization=Bearer+{assert}",
			"GET http://{assert}@footfall.example/visit?app=shop&uri={uri}&ip=203.0.113.5",
			"GET http://bearer:{assert}@footfall.example/visit?app=shop&uri={uri}&ip=203.0.113.5"),
	},
	{
		name:   "a forged ip with a key that may only count or read",
		sent:   "`ip=` with a key of the scope count, or read",
		status: 403, says: "only with a key of the scope assert",
		requests: append(forgedWith("Authorization: Bearer {count}", "Authorization: Bearer {read}"),
			"POST /visit"+bearerOf+"{count}\n\n"+`{"app":"shop","uri":"{uri}","ip":"203.0.113.5"}`, visitShop+"&visitor=alice"+bearerOf+"{count}",
			"GET /visit?app=strict&uri={uri}&ip=203.0.113.5"+bearerOf+"{strict}"),
	},
	{
		name:   "another app's key",
		sent:   "a key with every scope of another app, with `ip=` and without, to closed apps and to an open one",
		status: 401, says: "key: it is not a key of app",
		requests: append(keyed("{foreign}"),
			"GET /visit?app=ids&uri={uri}&visitor=alice"+bearerOf+"{foreign}", "GET /visit?app=demo&uri={uri}&ip=203.0.113.5"+bearerOf+"{foreign}",
			"GET /visit?app=strict&uri={uri}"+bearerOf+"{foreign}", "GET /visit?app=blog&uri={uri}&ip=203.0.113.5"+bearerOf+"{assert}"),
		headers: map[string]string{"Www-Authenticate": "Bearer"},
	},
	{
		name:     "a revoked key",
		sent:     "`ip=` with a key that two running instances knew, as soon as `key revoke` returned; and with its successor",
		answered: "401 key: it is not a key of app shop, or it is revoked; the successor 200", stored: "the successor's visits",
		story: revokedKey,
	},
	{
		name:   "a garbled key",
		status: 401, says: "key: it is not a key of app shop, or it is revoked",
		sent: "one letter changed, cut, doubled, in upper or lower case, quoted, only its name, 30,000 letters; two `Authorization` lines, " +
			"the first with another app's key",
		requests: append(keyed("{changed}", "{name}", "{name}_", "{upper}", "{lower}", "{assert}{assert}", "{assert}=", `"{assert}"`, "footfall_",
			"null", "0", "*", "' OR '1'='1",
			"{assert} x", "x {assert}", "{assert}, {assert}", "\xff\xfe", "{long}"),
			forgedWith("Authorization: Bearer {foreign}\nAuthorization: Bearer {assert}", "Authorization: Bearer {foreign}, Bearer {assert}",
				"authorization: bearer {changed}\nAUTHORIZATION: BEARER {assert}")...),
	},
	{
		name:   "a good key under another scheme",
		sent:   "Basic, Digest, Token, no scheme, `Bearer:`, or Basic before Bearer: these are not keys",
		status: 403, says: "ip: app shop accepts it",
		requests: forgedWith("Authorization: Basic {assert}", "Authorization: Basic Zm9vdGZhbGw6a2V5", "Authorization: Digest {assert}",
			"Authorization: Token {assert}",
			"Authorization: {assert}", "Authorization: Bearer:{assert}", "Authorization: Bearer{assert}", "Authorization: Bearer\xc2\xa0{assert}",
			"Authorization: Bearer\t{assert}", "Authorization: Basic eDp5\nAuthorization: Bearer {assert}"),
	},
	{
		name:   "a reading key where one is required",
		sent:   "a visit to an app made with `--access key`, with a key of the scope read",
		status: 403, says: "key: it does not permit counting",
		requests: []string{"GET /visit?app=strict&uri={uri}" + bearerOf + "{strictread}"},
	},
	{
		name:   "control: the key that is required",
		sent:   "the same with a key of the scope count",
		status: 200, stores: "{page} 127.0.0.1",
		requests: []string{"GET /visit?app=strict&uri={uri}" + bearerOf + "{strict}",
			"POST /visit" + bearerOf + "{strict}\n\n" + `{"app":"strict","uri":"{uri}"}`},
	},
	{
		name:   "control: a key that may assert",
		sent:   "`ip=` with a key of the scope assert; `bearer` in any case",
		status: 200, stores: "{page} 203.0.113.5",
		requests: append(forgedWith("Authorization: Bearer {assert}", "authorization: bearer {assert}", "AUTHORIZATION: BEARER   {assert}  "),
			"POST /visit"+bearerOf+"{assert}\n\n"+`{"app":"shop","uri":"{uri}","ip":"203.0.113.5"}`),
	},
}

// revokedKey revokes a key that two instances know, and its successor.
func revokedKey(w *world) {
	ctx := context.Background()
	scopes := []app.Scope{app.ScopeAssert, app.ScopeRead}
	var err error
	w.words["old"], err = w.Admin.AddKey(ctx, "shop", scopes)
	require.NoError(w.t, err)
	w.words["new"], err = w.Admin.AddKey(ctx, "shop", scopes)
	require.NoError(w.t, err)
	for _, to := range []via{direct, second} {
		for _, key := range []string{"{old}", "{new}"} {
			assert.Equal(w.t, http.StatusOK, w.send(to, forged+bearerOf+key).status, "both open while one takes the other's place")
		}
	}
	// The key itself is enough to revoke it. Its name would also do.
	require.NoError(w.t, w.Admin.RevokeKey(ctx, "shop", w.words["old"]))
	before := w.tables()
	for _, to := range []via{direct, second, direct} {
		for _, request := range keyed("{old}") {
			a := w.send(to, request)
			assert.Equal(w.t, http.StatusUnauthorized, a.status)
			assert.Contains(w.t, a.body, "it is not a key of app shop, or it is revoked")
			assert.NotContains(w.t, a.body, w.words["old"])
		}
		assert.Equal(w.t, http.StatusOK, w.send(to, "GET /counts?app=shop&uri={uri}&ip=203.0.113.5"+bearerOf+"{new}").status)
	}
	assert.Empty(w.t, w.tables().since(before))
	for _, key := range []string{"old", "new"} {
		assert.Zero(w.t, w.One(w.t, `SELECT count(*) FROM keys WHERE keys::text LIKE '%' || $1 || '%'`,
			w.words[key][strings.LastIndex(w.words[key][:20], "_"):]),
			"no part of a key but its name is stored")
	}
}

// readingAttacks query the numbers of others.
var readingAttacks = []attack{
	{
		name:   "another visitor's rank, no key",
		sent:   "`/counts?ip=…` and `/counts?visitor=…`: has this one been here?",
		status: 403, says: "accepts it only with a key of the scope read",
		requests: []string{
			"GET /counts?app=shop&uri={uri}&ip=127.0.0.1", "GET /counts?app=shop&uri={uri}&ip=203.0.113.5",
			"GET /counts?app=shop&uri={uri}&%69p=203.0.113.5",
			"GET /counts?app=ids&uri={uri}&visitor=alice",
			"POST /counts\n\n" + `{"app":"shop","uris":["{uri}"],"ip":"203.0.113.5"}`,
		},
	},
	{
		name:     "control: a key that may read",
		sent:     "the same with a key of the scope read",
		answered: "200 with the rank", stored: "nothing", story: ownKeyReads,
	},
	{
		name:   "another app's numbers",
		sent:   "`/counts` for a site that the app does not list, with a key and without",
		status: 403, says: "uri: app shop does not count the site",
		requests: []string{
			"GET /counts?app=shop&uri=http://blog.example:8080/", "GET /counts?app=shop&uri=http://blog.example:8080/" + bearerOf + "{read}",
			"GET /counts?app=shop&uri=http://blog.example:8080/&ip=127.0.0.1" + bearerOf + "{read}",
		},
	},
	{
		name:   "a missing app",
		sent:   "SQL, NUL, another case, spaces, 10,000 letters as the app's name",
		status: 404, says: "app: there is no app",
		requests: []string{
			"GET /visit?app=nobody&uri={uri}", "GET /counts?app=nobody&uri={uri}", "GET /visit?app=SHOP&uri={uri}", "GET /visit?app=+shop&uri={uri}",
			"GET /visit?app=shop%00&uri={uri}", "GET /visit?app=shop%27+OR+%271%27=%271&uri={uri}",
			"GET /visit?app=%27;DROP+TABLE+apps;--&uri={uri}",
			"GET /visit?app=%ff&uri={uri}", "GET /visit?app=../shop&uri={uri}", "GET /visit?app=shop,blog&uri={uri}",
			"GET /visit?app={long}&uri={uri}" + bearerOf + "{assert}",
			"POST /visit\n\n" + `{"app":"shop\u0000","uri":"{uri}"}`,
		},
	},
}

func ownKeyReads(w *world) {
	w.page++
	w.send(direct, visitShop+"&ip=203.0.113.5"+bearerOf+"{assert}")
	w.send(direct, visitShop+"&ip=203.0.113.6"+bearerOf+"{assert}")
	before := w.tables()
	for ip, want := range map[string]string{"203.0.113.5": "2 2 1 2", "203.0.113.6": "2 2 2 2", "203.0.113.7": "2 2 0 2"} {
		_, page := w.counted(w.send(direct, "GET /counts?app=shop&uri={uri}&ip="+ip+bearerOf+"{read}"))
		assert.Equal(w.t, want, page, ip)
	}
	_, page := w.counted(w.send(direct, "GET /counts?app=shop&uri={uri}"))
	assert.Equal(w.t, "2 2 0 2", page, "the sums are public")
	assert.Empty(w.t, w.tables().since(before))
}
