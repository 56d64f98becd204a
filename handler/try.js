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

// fieldsOf lists what a caller fills in: parameters, or the members of a body.
const fieldsOf = (api, call) => {
  const fields = (call.parameters || []).map(p => resolve(api, p)).filter(p => p.in !== 'header')
  const body = call.requestBody && resolve(api, call.requestBody.content['application/json'].schema)
  for (const [name, schema] of Object.entries(body ? body.properties : {})) {
    fields.push({name, in: 'body', schema, required: body.required.includes(name), example: schema.example})
  }
  return fields
}

const inputOf = field => {
  if (field.schema.enum) return make('select', {name: field.name}, make('option'), ...field.schema.enum.map(value => make('option', {}, value)))
  return make('input', {name: field.name, placeholder: field.example ?? field.schema.default ?? '', autocomplete: 'off', spellcheck: 'false'})
}

// requestOf is the request that a form asks for.
const requestOf = (method, path, fields, form) => {
  const query = new URLSearchParams(), body = {}, headers = {}
  for (const field of fields) {
    const value = form.elements[field.name].value
    if (field.in === 'path') path = path.replace(`{${field.name}}`, encodeURIComponent(value))
    if (value === '') continue
    if (field.in === 'query') for (const one of field.schema.type === 'array' ? value.split(/\s+/) : [value]) if (one) query.append(field.name, one)
    if (field.in === 'body') body[field.name] = value
  }
  const key = document.getElementById('key').value.trim()
  if (key) headers.Authorization = 'Bearer ' + key
  const request = {method, headers, credentials: 'omit', cache: 'no-store'}
  if (method === 'POST') {
    headers['Content-Type'] = 'application/json'
    request.body = JSON.stringify(body)
  }
  return [path + (query.size ? '?' + query : ''), request]
}

const tableOf = rows => {
  const names = [...new Set(rows.flatMap(Object.keys))]
  const cell = value => make('td', typeof value === 'number' ? {class: 'number'} : {}, String(value ?? ''))
  return make('table', {}, make('tr', {}, ...names.map(name => make('th', {}, name))),
    ...rows.map(row => make('tr', {}, ...names.map(name => cell(row[name])))))
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
    response = await fetch(path, request)
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
    if (said.days && said.days.length) out.append(chartOf(said.days))
    out.append(rows.length ? tableOf(rows) : make('p', {}, 'Nothing.'))
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
    form.append(make('label', {}, field.name), input, make('small', {}, field.description || ''))
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
