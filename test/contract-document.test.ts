import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { LANGUAGES, type Language } from '../panel/src/i18n/languages.ts'
import { behaviourOf, FOREIGN_GROUP, hasMeaning } from '../simulator/src/contacts/behaviour.ts'
import { DEFAULT_TIMINGS } from '../simulator/src/network.ts'
import { MAX_BODY_BYTES } from '../src/api/http/requests.ts'
import { delaysInWords, durationInWords } from '../src/api/openapi/in-words.ts'
import { MAX_URL_LENGTH } from '../src/api/resources/events/webhook.ts'
import { MAX_TEXT_UNITS } from '../src/api/resources/message.ts'
import { readSettings, type Settings } from '../src/config.ts'
import { CONNECTION_STATES, RECONNECTING_MS } from '../src/domain/connection/connection.ts'
import { EVENT_KINDS, type EventMedia, incomingBody, MAX_EVENT_TEXT_UNITS } from '../src/domain/events/event.ts'
import { RECEIVING_FAILURES } from '../src/domain/media.ts'
import { FAILURE_CODES } from '../src/domain/message.ts'
import { REFUSALS } from '../src/domain/refusal.ts'
import { API_SETTINGS, ApiHarness } from './flows/api/harness.ts'

/** Compares one document with the code. @returns one sentence for each difference */
type Check = (text: string) => string[]

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const defaults = readSettings({})
const { timeoutMs, retryDelaysMs } = defaults.webhook
const NUMBERS = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']
const attempts = retryDelaysMs.length + 1
const count = (n: number) => n.toLocaleString('en')

/** The text from the heading `title` to the next heading of the same or a higher level. */
function section(text: string, title: string): string {
  const [, marks = '', rest = ''] = new RegExp(`^(#+) ${title}$([^]*)`, 'm').exec(text) ?? []
  return rest.split(new RegExp(`^#{1,${marks.length || 1}} `, 'm'))[0] ?? ''
}

/** The cells of every table row. */
function rows(text: string): string[][] {
  const lines = text.split('\n').filter(line => line.startsWith('| '))
  return lines.map(line => line.split('|').slice(1, -1)).map(cells => cells.map(cell => cell.trim()))
}

const quoted = (cell = '') => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code ?? '')

function difference(documented: readonly string[], actual: readonly string[]): string[] {
  return [
    ...actual.filter(item => !documented.includes(item)).map(item => `Not documented: ${item}.`),
    ...documented.filter(item => !actual.includes(item)).map(item => `Documented, but not in the code: ${item}.`),
  ]
}

const REFUSAL_ROWS = Object.entries(REFUSALS).map(([code, [status]]) => `${status} ${code}`)
const checkRefusals: Check = text =>
  difference(
    rows(text).flatMap(([status = '', code]) => (/^\d{3}$/.test(status) ? [`${status} ${quoted(code)[0]}`] : [])),
    REFUSAL_ROWS,
  )

/** @param header the first header cell of the table whose first column lists exactly `actual` */
function lists(title: string, header: string, actual: readonly string[]): Check {
  return text => {
    const table = section(text, title).split(`\n| ${header} |`)[1]?.split('\n\n')[0] ?? ''
    const documented = rows(table).flatMap(([first]) => quoted(first))
    // `message.sent`, `.delivered` stands for two of the same prefix.
    const full = documented.map(name => (name.startsWith('.') ? `message${name}` : name))
    return difference(full, actual)
  }
}

const MEDIA: EventMedia = {
  id: 'med_1',
  facts: {
    mimetype: 'image/png',
    size: 1,
    sha256: new Uint8Array(32),
    filename: null,
    seconds: null,
    width: null,
    height: null,
  },
  failure: null,
}

/** The fields of a `message.received` with everything that can be in it. */
const RECEIVED_FIELDS = Object.keys(
  JSON.parse(
    incomingBody(
      'inst_1',
      'msg_1',
      {
        id: 'A',
        from: '12345',
        addressing: 'lid',
        chat: '1@g.us',
        lid: '12345@lid',
        username: 'ana',
        type: 'text',
        text: 'x'.repeat(MAX_EVENT_TEXT_UNITS + 1),
        group: '1@g.us',
        name: 'Ana',
        sentAt: 0,
        details: {
          quote: { whatsappId: 'B', from: null, text: null },
          mentions: ['12345'],
          reaction: { whatsappId: 'B', emoji: null },
          location: { latitude: 0, longitude: 0 },
          contacts: [],
          poll: { question: '?', options: [], selectable: null },
          referral: { sourceId: null, clickId: null, headline: null, url: null },
          viewOnce: true,
        },
      },
      MEDIA,
    ),
  ).data,
)

/** Settings without a literal default, and the value in force if the variable is not set. */
const WITHOUT_DEFAULT: Readonly<Record<string, (settings: Settings) => unknown>> = {
  MEDIA_URL: settings => settings.media.place,
  MEDIA_ALLOWED_NETWORKS: settings => settings.media.allowedNetworks[0] ?? null,
  PROXY_ALLOWED_NETWORKS: settings => settings.proxyNetworks[0] ?? null,
  METRICS_PORT: settings => settings.metricsPort,
  OIDC_ISSUER: settings => settings.oidc,
  OIDC_CLIENT_ID: settings => settings.oidc,
  OIDC_CLIENT_SECRET: settings => settings.oidc,
  OIDC_NAME: settings => settings.oidc,
  SMTP_URL: settings => settings.mail,
  SMTP_FROM: settings => settings.mail,
  DATABASE_URL: settings => settings.databaseUrl,
  ADMIN_KEY: settings => settings.adminKey,
  MASTER_KEY: settings => settings.masterKey,
  PUBLIC_URL: settings => settings.publicUrl,
  TRUSTED_PROXIES: settings => settings.trustedProxies[0] ?? null,
  WEBHOOK_ALLOWED_NETWORKS: settings => settings.webhook.allowedNetworks[0] ?? null,
  WHATSAPP_DEVICE: settings => settings.whatsapp.device,
  WHATSAPP_PASSKEY: settings => settings.whatsapp.passkeys,
  WHATSAPP_VERSION: settings => settings.whatsapp.version,
  WHATSAPP_URL: settings => settings.whatsapp.url,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: settings => settings.traces,
  OTEL_EXPORTER_OTLP_HEADERS: settings => settings.traces,
  OTEL_RESOURCE_ATTRIBUTES: settings => settings.traces,
  WHATSAPP_THREADS: settings => settings.whatsapp.threads,
}

/** The names that `readSettings` reads from the environment. */
function settingNames(): string[] {
  const names = new Set<string>()
  const environment = new Proxy<NodeJS.ProcessEnv>({}, { get: (_, name) => void names.add(String(name)) })
  readSettings(environment)
  names.delete('NODE_ENV')
  return [...names].filter(name => !name.endsWith('_FILE'))
}

const checkSettings: Check = text => {
  const table = rows(section(text, 'Settings')).filter(([first]) => first?.startsWith('`'))
  const documented = table.flatMap(([names, given = '']) => {
    const values = given.startsWith('`') ? quoted(given) : []
    return quoted(names).map((name, index) => ({ name, value: values[index] }))
  })
  const wrong = documented.filter(({ name, value }) => {
    if (value === undefined) return WITHOUT_DEFAULT[name]?.(defaults) !== null
    return JSON.stringify(readSettings({ [name]: value })) !== JSON.stringify(defaults)
  })
  return [
    ...difference(
      documented.map(({ name }) => name),
      settingNames(),
    ),
    ...wrong.map(({ name, value = 'none' }) => `${value} is not the default of ${name}.`),
  ]
}

const BEHAVIOURS: Readonly<Record<string, object>> = {
  'not on WhatsApp': { onWhatsApp: false },
  'delivers, never reads': { delivers: true, reads: false },
  'never delivers': { delivers: false, reads: false },
  'refused by WhatsApp (421)': { onWhatsApp: true, refusal: '421' },
  'answers every message with the same text, or with the same file': { echoes: true },
  'reads without a separate delivery receipt': { delivers: false, reads: true },
}

/** Every number that could have a meaning: the range that the sandbox reserves. */
const RESERVED = Array.from({ length: 100 }, (_, index) => `150055500${String(index).padStart(2, '0')}`)

function checkSandbox(title: string): Check {
  return text => {
    const part = section(text, title)
    const documented = rows(part).flatMap(([number, behaviour = '']) =>
      quoted(number).map(name => ({ name, behaviour })),
    )
    const numbers = documented.filter(({ name }) => /^\d+$/.test(name))
    const wrong = numbers.filter(({ name, behaviour }) => {
      const actual = { ...behaviourOf(name) }
      return (
        JSON.stringify({ ...actual, ...BEHAVIOURS[behaviour] }) !== JSON.stringify(actual) || !BEHAVIOURS[behaviour]
      )
    })
    const groups = documented.filter(({ name }) => /^\d+@g\.us$/.test(name)).map(({ name }) => name)
    return [
      ...difference(
        numbers.map(({ name }) => name),
        RESERVED.filter(hasMeaning),
      ),
      ...wrong.map(({ name }) => `${name} does not behave as documented.`),
      ...difference(groups, [FOREIGN_GROUP]),
      ...states(durationInWords(DEFAULT_TIMINGS.deliveredAfterMs), durationInWords(DEFAULT_TIMINGS.readAfterMs))(part),
    ]
  }
}

/** Passes if the text contains every phrase; line breaks count as spaces. */
function states(...phrases: string[]): Check {
  return text =>
    phrases
      .filter(phrase => !text.replace(/\s+/g, ' ').includes(phrase))
      .map(phrase => `It does not state "${phrase}".`)
}

const RATE = `${count(defaults.ratePerMinute)} calls`
const TTL_HOURS = defaults.messageTtlMs / 3_600_000
const RETENTION_DAYS = defaults.retentionMs / 86_400_000
const UNITS = `${count(MAX_TEXT_UNITS)} UTF-16 units`
const DELAYS = delaysInWords(retryDelaysMs)

/** Each document, its check, and a change to the document that the check must find. */
const CHECKS: readonly [document: string, what: string, check: Check, from: string | RegExp, to: string][] = [
  ['docs/errors.md', 'every code', checkRefusals, /^\| 404 \| `event_not_found`.*\n/m, ''],
  [
    'docs/errors.md',
    'the status of every code',
    checkRefusals,
    '| 409 | `delivery_pending`',
    '| 410 | `delivery_pending`',
  ],
  [
    'docs/errors.md',
    'the failure codes',
    lists('Why a message failed', 'Code', FAILURE_CODES),
    '`expired`',
    '`outdated`',
  ],
  ['docs/errors.md', 'the rate', states(RATE), /\b100 calls/g, '90 calls'],
  [
    'docs/contract.md',
    'the codes of received files',
    lists('3. Sending', '`media.error.code`', Object.keys(RECEIVING_FAILURES)),
    '`media_damaged`',
    '`media_odd`',
  ],
  ['docs/contract.md', 'the failure codes', lists('3. Sending', 'Code', FAILURE_CODES), '`unconfirmed`', '`unknown`'],
  [
    'docs/contract.md',
    'the events',
    lists('4. States and events', 'Event', EVENT_KINDS),
    '`message.read` |',
    '`message.seen` |',
  ],
  [
    'docs/contract.md',
    'the fields of a received message',
    lists('4. States and events', 'Field', RECEIVED_FIELDS),
    '| `truncated`',
    '| `cut`',
  ],
  [
    'docs/contract.md',
    'the connection states',
    lists('6. Instances and the management API', 'State', CONNECTION_STATES),
    '| `stopped` |',
    '| `halted` |',
  ],
  ['docs/webhooks.md', 'the events', lists('Receive an event', '`event`', EVENT_KINDS), '`.read` |', '`.seen` |'],
  ['docs/contract.md', 'the sandbox', checkSandbox('7. Sandbox'), '`15005550006`', '`15005550007`'],
  [
    'docs/contract.md',
    'the behaviour of each sandbox number',
    checkSandbox('7. Sandbox'),
    'delivers, never reads',
    'never delivers',
  ],
  [
    'README.md',
    'the delays of the sandbox',
    states(
      durationInWords(DEFAULT_TIMINGS.deliveredAfterMs),
      `as read after ${durationInWords(DEFAULT_TIMINGS.readAfterMs)}`,
    ),
    'after 600 ms',
    'after 700 ms',
  ],
  ['docs/contract.md', 'the rate', states(`${RATE} (setting \`RATE_LIMIT_PER_MINUTE\`)`), '100 calls', '90 calls'],
  ['docs/contract.md', 'the retry schedule', states(DELAYS), '30 s, 2 min', '40 s, 2 min'],
  ['docs/contract.md', 'the attempts', states(`${NUMBERS[attempts]} attempts`), /\bsix attempts/g, 'five attempts'],
  [
    'docs/contract.md',
    'the webhook timeout',
    states(`within ${durationInWords(timeoutMs)} (setting`),
    '10 s (setting',
    '9 s (setting',
  ],
  [
    'docs/contract.md',
    'the age of a message',
    states(`${TTL_HOURS} hours old (setting \`MESSAGE_TTL_HOURS\`)`),
    '24 hours old',
    '12 hours old',
  ],
  [
    'docs/contract.md',
    'the reconnection time',
    states(`less than ${RECONNECTING_MS / 60_000} minutes`),
    /less than 5 minutes/g,
    'less than 9 minutes',
  ],
  [
    'docs/contract.md',
    'the size of a text',
    states(`1 to ${UNITS}`),
    '65,536 UTF-16 units, without',
    '65,535 UTF-16 units, without',
  ],
  [
    'docs/contract.md',
    'the text of an event',
    states(`at most ${count(MAX_EVENT_TEXT_UNITS)} UTF-16 units`),
    'at most 65,536',
    'at most 65,535',
  ],
  ['docs/contract.md', 'the size of a URL', states(`at most ${count(MAX_URL_LENGTH)} characters`), '2,048', '2,047'],
  ['docs/contract.md', 'the size of a body', states(`at most ${MAX_BODY_BYTES / 1024 ** 2} MiB`), '1 MiB', '2 MiB'],
  [
    'docs/limits.md',
    'the rate',
    states(`${count(defaults.ratePerMinute)} in 60 s (\`RATE_LIMIT_PER_MINUTE\`)`),
    '100 in 60 s',
    '90 in 60 s',
  ],
  ['docs/limits.md', 'the attempts', states(`${attempts} (\`WEBHOOK_RETRY_DELAYS_MS\`)`), '6 (`WEBHOOK', '5 (`WEBHOOK'],
  [
    'docs/limits.md',
    'the webhook timeout',
    states(`\`WEBHOOK_TIMEOUT_MS\`, ${durationInWords(timeoutMs)}`),
    '`WEBHOOK_TIMEOUT_MS`, 10 s',
    '`WEBHOOK_TIMEOUT_MS`, 9 s',
  ],
  ['docs/limits.md', 'the retention', states(`\`RETENTION_DAYS\` (${RETENTION_DAYS})`), '(30)', '(20)'],
  ['docs/limits.md', 'the size of a text', states(UNITS), /65,536/g, '65,535'],
  ['README.md', 'every setting', checkSettings, /^\| `DRAIN_SECONDS`.*\n/m, ''],
  ['README.md', 'every default', checkSettings, '| `RETENTION_DAYS` | `30` |', '| `RETENTION_DAYS` | `31` |'],
  [
    'README.md',
    'a setting without a default',
    checkSettings,
    '| `MESSAGE_TTL_HOURS` | `24` |',
    '| `MESSAGE_TTL_HOURS` | |',
  ],
  ['README.md', 'no setting that the code does not read', checkSettings, '| `LOG_LEVEL` |', '| `LOG_VOLUME` |'],
]

describe.each(CHECKS)('%s: %s', (document, _, check, from, to) => {
  const text = read(document)

  test('matches the code', () => expect(check(text)).toEqual([]))

  test('a violation is found', () => {
    const changed = text.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'gm'), to)
    expect(changed).not.toBe(text)
    expect(check(changed)).not.toEqual([])
  })
})

/** How a text of the panel would state the default number of attempts, or the rate. */
const IN_THE_PANEL: Readonly<Record<Language, RegExp>> = {
  en: /\b(six|6) attempts\b|\b100 calls\b/,
  'pt-BR': /\b(seis|6) tentativas\b|\b100 chamadas\b/,
}

describe('the settings in force', () => {
  const describeWith = async (documented: typeof API_SETTINGS.documented) => {
    await using api = await ApiHarness.start({ options: { settings: { ...API_SETTINGS, documented } } })
    return (await api.call({ path: '/openapi.json' })).text
  }

  test('are the ones in the API reference', async () => {
    const usual = await describeWith(API_SETTINGS.documented)
    const stated = [
      RATE,
      DELAYS,
      `within ${durationInWords(timeoutMs)}`,
      `up to ${attempts} attempts`,
      `1 to ${attempts}.`,
    ]
    expect(states(...stated)(usual)).toEqual([])
    const other = await describeWith({
      ratePerMinute: 7,
      webhookTimeoutMs: 2_500,
      webhookRetryDelaysMs: [3_000, 7_200_000],
    })
    expect(states('7 calls', '3 s and 2 h', 'within 2500 ms', 'up to 3 attempts', '1 to 3.')(other)).toEqual([])
    for (const phrase of stated) expect(other).not.toContain(phrase)
  })

  test.each(LANGUAGES)('are not hard-coded in the panel: $code', async ({ code, load }) => {
    const texts = JSON.stringify(await load(), (_, text) => (typeof text === 'function' ? String(text) : text))
    expect(texts).not.toMatch(IN_THE_PANEL[code])
  })
})
