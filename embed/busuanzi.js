// busuanzi.pure.mini.js fills pages that were made for busuanzi, and counts a visit. A theme loads it under the name of
// busuanzi's own script, from another host. It runs once for each page, and again if a theme that replaces pages runs its
// scripts again. As busuanzi.min.js it works like the script of busuanzi.cc, which runs again only after busuanziRequestSent
// is unset.
// docs/embed.md lists the elements that it fills. It inserts numbers as text, and nothing else.
(() => {
	const d = document
	const line = d.currentScript || d.querySelector('script[src*="/busuanzi.pure."],script[src*="/busuanzi.min."]') // a module has no current script
	const cc = line.src.includes('/busuanzi.min.')
	if (cc && self.busuanziRequestSent) return
	if (cc) self.busuanziRequestSent = true
	const service = new URL(cc ? '../../api.php' : '../../busuanzi', line.src)
	const bszs = ['site_pv', 'page_pv', 'site_uv', 'page_uv', ...cc ? ['today_pv', 'today_uv'] : []]
	const from = self.bszTag ? '' : d.referrer.split('/', 3).join('/') // the origin that led here, unless the theme replaced the page
	let turn = 0 // number of calls: before the page is visible, only the last one counts

	// by finds elements with one of the names as id or class.
	const by = names => d.querySelectorAll(names.map(name => `#${name},.${name}`).join())

	const display = how => {
		for (const name of bszs) {
			for (const sentence of by(['busuanzi_container_' + name, 'vercount_container_' + name])) sentence.style.display = how
		}
	}

	// Pages call these functions after they change. Whatever service they name, the numbers are for the current page and from
	// this service.
	self.bszTag = {
		bszs,
		texts: told => {
			for (const name of bszs) {
				for (const place of by(['busuanzi_value_' + name, 'busuanzi_' + name, 'vercount_value_' + name])) place.textContent = told[name]
			}
		},
		shows: () => display('inline'),
		hides: () => display('none'),
	}
	self.bszCaller = {
		fetch: async (_, draw) => {
			const mine = ++turn
			while (d.prerendering || d.hidden) {
				await new Promise(done => ['prerenderingchange', 'visibilitychange'].map(e => d.addEventListener(e, done, {once: true})))
			}
			if (mine != turn) return
			try {
				const page = {url: location.href, referrer: mine > 1 ? '' : from}
				const [query, how] = cc ? ['', {method: 'POST', body: JSON.stringify(page)}] : ['?' + new URLSearchParams(page)]
				const answer = await fetch(service + query, {credentials: 'omit', keepalive: true, ...how})
				const told = await answer.json()
				if (!answer.ok) throw told.error
				for (const name of bszs) told[name] ??= told['busuanzi_' + name]
				if (d.readyState == 'loading') await new Promise(done => d.addEventListener('DOMContentLoaded', done))
				draw(told)
			} catch (why) {
				console.warn(`footfall: ${service} gives no numbers: ${why}`)
				bszTag.hides()
			}
		},
	}
	bszCaller.fetch('', told => {
		bszTag.texts(told)
		bszTag.shows()
	})
})()
