import { integerIn, numberIn, parseHttpUrl, type ReadSetting } from './setting-values.ts'
import type { TraceTarget } from './traces/traces.ts'

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
const MAX_TIMEOUT_MS = 60_000
/** The path of OTLP over HTTP, below the endpoint of all signals. */
const TRACES_PATH = 'v1/traces'
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const PAIRS = 'names and values such as key=value,other=value, percent-encoded'

/** @returns null if traces are off. The other variables may then be meant for other programs, so they are not validated. */
export function readTraces(read: ReadSetting): TraceTarget | null {
  const isOn = read('OTEL_TRACES_EXPORTER', false, '"otlp" or "none"', text =>
    text === 'otlp' ? true : text === 'none' ? false : undefined,
  )
  const readIfOn: ReadSetting = (name, fallback, expected, parse) =>
    read(name, fallback, expected, text => (isOn ? parse(text) : fallback))
  const base = readIfOn('OTEL_EXPORTER_OTLP_ENDPOINT', new URL('http://localhost:4318'), URL_EXPECTED, parseHttpUrl)
  const own = readIfOn('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', null, URL_EXPECTED, parseHttpUrl)
  readIfOn('OTEL_EXPORTER_OTLP_PROTOCOL', null, '"http/protobuf", the only protocol that Pombal supports', text =>
    text === 'http/protobuf' ? text : undefined,
  )
  const settings: TraceTarget = {
    url: own ?? below(base),
    headers: readIfOn('OTEL_EXPORTER_OTLP_HEADERS', {}, PAIRS, parseHeaders),
    timeoutMs: readIfOn(
      'OTEL_EXPORTER_OTLP_TIMEOUT',
      10_000,
      `milliseconds, 1–${MAX_TIMEOUT_MS}`,
      integerIn(1, MAX_TIMEOUT_MS),
    ),
    serviceName: readIfOn('OTEL_SERVICE_NAME', 'pombal', 'a name', text => text),
    resource: readIfOn('OTEL_RESOURCE_ATTRIBUTES', {}, PAIRS, parsePairs),
    sampler: readIfOn('OTEL_TRACES_SAMPLER', 'parentbased_always_on', `one of ${SAMPLERS.join(', ')}`, text =>
      SAMPLERS.find(sampler => sampler === text),
    ),
    ratio: readIfOn('OTEL_TRACES_SAMPLER_ARG', 1, 'a number, 0–1', numberIn(0, 1)),
  }
  return isOn ? settings : null
}

const URL_EXPECTED = 'an absolute http or https URL'

function below(base: URL): URL {
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/?$/, `/${TRACES_PATH}`)
  return url
}

function parseHeaders(text: string): Record<string, string> | undefined {
  const headers = parsePairs(text)
  const isValid = ([name, value]: [string, string]) => HEADER_NAME.test(name) && /^[\x20-\x7e]*$/.test(value)
  return headers && Object.entries(headers).every(isValid) ? headers : undefined
}

function parsePairs(text: string): Record<string, string> | undefined {
  const pairs: [string, string][] = []
  for (const part of text.split(',')) {
    const [, name, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    if (name === undefined || value === undefined) return undefined
    try {
      pairs.push([decodeURIComponent(name), decodeURIComponent(value)])
    } catch {
      return undefined
    }
  }
  return Object.fromEntries(pairs)
}
