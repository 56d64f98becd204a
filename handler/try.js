// The page on which calls are tried. Anybody may have typed what the service answers, so it is shown
// as text and never as HTML.
'use strict'

// make makes an element with attributes and children.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

const draw = (tag, attributes) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  return element
}

// resolve follows a reference inside the document.
const resolve = (api, part) => part.$ref ? part.$ref.slice(2).split('/').reduce((at, name) => at[name], api) : part

// fieldsOf lists what a caller fills in: parameters, and the members of a body, or a body that is a list.
const fieldsOf = (api, call) => {
  const fields = (call.parameters || []).map(p => resolve(api, p)).filter(p => p.in !== 'header')
  const body = call.requestBody && resolve(api, call.requestBody.content['application/json'].schema)
  if (body && !body.properties) fields.push({name: 'body', in: 'list', schema: body, required: true, example: JSON.stringify(body.example)})
  for (const [name, schema] of Object.entries(body?.properties ?? {})) {
    fields.push({name, in: 'body', schema, required: body.required.includes(name), example: schema.example, description: schema.description})
  }
  return fields
}

const inputOf = field => {
  if (field.schema.enum) return make('select', {name: field.name}, make('option'), ...field.schema.enum.map(value => make('option', {}, value)))
  return make('input', {name: field.name, autocomplete: 'off', spellcheck: 'false'})
}

// hintOf says what a field is for, and what may stand in it: in the field itself an example would
// look like a value.
const hintOf = field => [
  field.description,
  field.schema.default !== undefined && `Default: ${field.schema.default}.`,
  field.example !== undefined && `For example: ${[].concat(field.example).join(' ')}`,
].filter(Boolean).join(' ')

// requestOf is the request that a form asks for.
const requestOf = (method, path, fields, form) => {
  const query = new URLSearchParams()
  let body = {}
  for (const field of fields) {
    const value = form.elements[field.name].value
    if (field.in === 'path') path = path.replace(`{${field.name}}`, encodeURIComponent(value))
    if (value === '') continue
    if (field.in === 'query') for (const one of field.schema.type === 'array' ? value.split(/\s+/) : [value]) if (one) query.append(field.name, one)
    if (field.in === 'body') body[field.name] = field.schema.type === 'array' ? value.split(/\s+/).filter(Boolean) : value
    if (field.in === 'list') body = value
  }
  const request = {method, headers: {}, credentials: 'omit', cache: 'no-store'}
  if (method === 'POST') {
    request.headers['Content-Type'] = 'application/json'
    request.body = typeof body === 'string' ? body : JSON.stringify(body)
  }
  return [path + (query.size ? '?' + query : ''), request]
}

// ask sends a request, and the key with it only where nothing is answered without: another app's key
// is refused also by an app that needs none. What is refused was not counted.
const ask = async (path, request) => {
  const response = await fetch(path, request)
  const key = document.getElementById('key').value.trim()
  if (!key || response.status !== 401 && response.status !== 403) return response
  return fetch(path, {...request, headers: {...request.headers, Authorization: 'Bearer ' + key}})
}

// tableOf shows rows. A uri or site stands there as people read it, and as it is stored in its title.
const tableOf = rows => {
  const names = [...new Set(rows.flatMap(Object.keys))].filter(name => name !== 'shown')
  const cell = (row, name) => {
    const value = row[name]
    if (typeof value === 'number') return make('td', {class: 'number'}, String(value))
    if (row.shown !== undefined && (name === 'uri' || name === 'site')) return make('td', {title: value}, row.shown)
    return make('td', {}, typeof value === 'object' ? JSON.stringify(value) : String(value ?? ''))
  }
  return make('table', {}, make('tr', {}, ...names.map(name => make('th', {}, name))),
    ...rows.map(row => make('tr', {}, ...names.map(name => cell(row, name)))))
}

// The moment at which a day like 20190629 begins, and the day of a moment.
const momentOf = day => Date.UTC(Math.floor(day / 10000), Math.floor(day / 100) % 100 - 1, day % 100)
const dayOf = moment => Number(new Date(moment).toISOString().slice(0, 10).replaceAll('-', ''))

const aDay = 24 * 60 * 60 * 1000, mostBars = 4000

// withEmptyDays adds the days on which nobody came to those of an answer, or of a part of it.
const withEmptyDays = ({days, from, to, next}, after) => {
  const counted = new Map(days.map(day => [day.day, day])), all = []
  const first = /^\d{8}$/.test(after) ? momentOf(after) + aDay : momentOf(from ?? days[0].day)
  const last = momentOf(!next && to || days[days.length - 1].day)
  if (last - first > mostBars * aDay) return days
  for (let moment = first; moment <= last; moment += aDay) all.push(counted.get(dayOf(moment)) ?? {day: dayOf(moment), pv: 0})
  return all
}

// chartOf is a bar for each day's pv.
const chartOf = days => {
  const most = Math.max(1, ...days.map(day => day.pv))
  const chart = draw('svg', {viewBox: `0 0 ${days.length * 10} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'pv by day'})
  days.forEach((day, i) => {
    const height = 96 * day.pv / most
    const bar = draw('rect', {x: i * 10 + 1, y: 100 - height, width: 8, height})
    const title = draw('title', {})
    title.textContent = `${day.day}: ${day.pv}`
    bar.append(title)
    chart.append(bar)
  })
  return chart
}

// show shows an answer, and a button for the next part of its list.
const show = async (out, path, request) => {
  out.replaceChildren(make('p', {}, make('code', {}, `${request.method} ${path}`)))
  let response, text
  try {
    response = await ask(path, request)
    text = await response.text()
  } catch (fault) {
    out.append(make('p', {}, 'No answer: ' + fault.message))
    return
  }
  out.append(make('p', {}, `${response.status} ${response.statusText}`))
  let said
  try { said = JSON.parse(text) } catch { /* CSV, say: it is shown as it is */ }
  const rows = said && Object.values(said).find(Array.isArray)
  if (rows && rows.every(row => row && typeof row === 'object') && !said.openapi) {
    if (said.days && said.days.length) out.append(chartOf(withEmptyDays(said, new URL(path, location.href).searchParams.get('after'))))
    if (said.kept === false) out.append(make('p', {}, `${said.pv} came on ${said.day}; who they were is not kept any more.`))
    else out.append(rows.length ? tableOf(rows) : make('p', {}, 'Nothing.'))
  }
  out.append(make('pre', {}, text.length > 100000 ? text.slice(0, 100000) + '…' : text))
  if (said && said.next) {
    const more = make('button', {type: 'button'}, 'Next')
    const url = new URL(path, location.href)
    url.searchParams.set('after', said.next)
    more.addEventListener('click', () => show(out, url.pathname + url.search, request))
    out.append(more)
  }
}

const formOf = (api, method, path, call) => {
  const fields = fieldsOf(api, call), form = make('form', {id: `${method} ${path}`}), out = make('div')
  for (const field of fields) {
    const input = inputOf(field)
    if (field.required) input.required = true
    form.append(make('label', {}, field.name), input, make('small', {}, hintOf(field)))
  }
  form.append(make('button', {}, 'Send'))
  form.addEventListener('submit', event => {
    event.preventDefault()
    show(out, ...requestOf(method, path, fields, form))
  })
  return make('details', {}, make('summary', {}, make('code', {}, `${method} ${path}`), ' ' + (call.summary || '')),
    make('p', {}, call.description || ''), form, out)
}

const start = async () => {
  const calls = document.getElementById('calls')
  const api = await (await fetch('/openapi.json')).json()
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, call] of Object.entries(methods)) calls.append(formOf(api, method.toUpperCase(), path, call))
  }
}

start()
