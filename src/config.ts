import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { MAX_RETRIES, MAX_RETRY_DELAY_MS, RETRY_DELAYS_MS } from './domain/events/delivery.ts'
import { DEFAULT_LINKED_DEVICE, LINKED_DEVICES, type LinkedDevice } from './domain/linked-device.ts'
import type { AllowedNetwork } from './domain/media.ts'
import { Environment } from './environment.ts'
import { type MediaSettings, parseNetworksAtPorts, readMedia } from './media-settings.ts'
import { readVersion } from './program-files.ts'
import { integerIn, numberIn, parseHttpUrl, type ReadSetting, tryDecode } from './setting-values.ts'
import { readTraces } from './trace-settings.ts'
import type { TraceTarget } from './traces/traces.ts'

const MASTER_KEY_BYTES = 32
const MIN_ADMIN_KEY_LENGTH = 32
/** The limit of the sign-in call. */
const MAX_ADMIN_KEY_LENGTH = 1_024
/** The required format of an admin key. */
export const ADMIN_KEY_FORMAT = `${MIN_ADMIN_KEY_LENGTH} to ${MAX_ADMIN_KEY_LENGTH} visible ASCII characters`
/** The required format of a master key. */
export const MASTER_KEY_FORMAT = '32 bytes as base64 (openssl rand -base64 32) or as 64 hex digits'
const POSTGRES_URL_FORMAT = 'a postgres:// URL, in whose user, password and database name % is written as %25'
/** The largest part of a version that WhatsApp's handshake can carry. */
const MAX_UINT32 = 2 ** 32 - 1
/** A stop takes at most 10 s, including work in flight. */
const MAX_DRAIN_SECONDS = 5
const MAX_THREADS = 64
const MAX_OIDC_NAME_LENGTH = 40
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** The settings, read once from the environment (contract §8). `compared-settings.ts` lists those that nodes compare. */
export interface Settings {
  version: string
  host: string
  /** 0 lets the system choose. */
  port: number
  /** The port that serves metrics without a key; null: metrics only at `port`, with the admin key. */
  metricsPort: number | null
  dataDir: string
  /** How long a stopping node still accepts calls while it reports that it is not ready. */
  drainMs: number
  /** A PostgreSQL URL; null: SQLite in `dataDir`. */
  databaseUrl: string | null
  /** How many copies from before upgrades are kept on SQLite; 0: no copies are made. */
  upgradeBackups: number
  /** Null: created at the first start and kept in `dataDir`. */
  adminKey: string | null
  /** The file in `ADMIN_KEY_FILE`. */
  adminKeyFile: string | null
  masterKey: Buffer | null
  publicUrl: URL | null
  /** Addresses and CIDR networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. */
  trustedProxies: readonly string[]
  logLevel: (typeof LOG_LEVELS)[number]
  ratePerMinute: number
  numberChecksPerDay: number
  messageTtlMs: number
  retentionMs: number
  webhook: {
    timeoutMs: number
    retryDelaysMs: readonly number[]
    /** CIDR notation. */
    allowedNetworks: readonly string[]
    /** Whether webhooks may reach loopback and private networks (contract §5). */
    privateAllowed: boolean
  }
  whatsapp: {
    /** The WhatsApp Web version; null: the driver's own. */
    version: [number, number, number] | null
    /** Announced when a number is linked. */
    device: LinkedDevice
    /** Whether a number can be linked with a passkey. */
    passkeys: boolean
    /** The URL of a simulated WhatsApp on loopback, for tests; null: the real one. */
    url: string | null
    /** How many threads run connections; null: one fewer than the cores, at least one. */
    threads: number | null
  }
  /** Addresses that are not public but where the proxies of instances may be; with a port, only at that port. */
  proxyNetworks: readonly AllowedNetwork[]
  media: MediaSettings
  /** The OpenID Connect provider; null: people do not sign in with one. */
  oidc: { issuer: URL; clientId: string; clientSecret: string; name: string } | null
  /** The mail server for alerts; null: none are sent by e-mail. */
  mail: { url: string; from: string } | null
  sandbox: boolean
  /** Where spans are sent; null: traces are off. */
  traces: TraceTarget | null
  /** A sentence for each variable whose name is almost that of a setting. */
  misspelled: readonly string[]
}

/** Lists every invalid setting with its name and the expected value. */
export class BadSettings extends Error {
  override readonly name = 'BadSettings'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** The reader returns `fallback` for an unset or empty variable, and reports a problem if `parse` returns undefined. */
function settingReader(environment: Environment, problems: string[]): ReadSetting {
  return (name, fallback, expected, parse) => {
    try {
      const text = environment.get(name)
      if (text === null) return fallback
      const value = parse(text)
      if (value !== undefined) return value
      problems.push(`${name} must be ${expected}.`)
    } catch (error) {
      problems.push((error as Error).message)
    }
    return fallback
  }
}

/** @throws BadSettings with all problems at once */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const problems: string[] = []
  const environment = new Environment(env)

  const read = settingReader(environment, problems)
  const production = env['NODE_ENV'] === 'production'
  const host = read('HOST', '127.0.0.1', 'an IP address or a host name', text =>
    /[\s/]/.test(text) ? undefined : text,
  )
  const publicUrl = read(
    'PUBLIC_URL',
    null,
    'an http or https URL without a path, such as https://pombal.example',
    parseOrigin,
  )
  const databaseUrl = read('DATABASE_URL', null, POSTGRES_URL_FORMAT, parsePostgresUrl)
  const adminKey = read('ADMIN_KEY', null, ADMIN_KEY_FORMAT, parseAdminKey)
  const masterKey = read('MASTER_KEY', null, MASTER_KEY_FORMAT, parseMasterKey)
  for (const [name, key] of Object.entries({ ADMIN_KEY: adminKey, MASTER_KEY: masterKey }))
    if (databaseUrl && key === null && !problems.some(problem => problem.startsWith(name)))
      problems.push(`${name} is required with DATABASE_URL: nodes must share it.`)

  const settings: Settings = {
    version: readVersion(),
    host,
    port: read('PORT', 3000, 'a port number, 0–65535', integerIn(0, 65_535)),
    metricsPort: read('METRICS_PORT', null, 'a port number, 0–65535', integerIn(0, 65_535)),
    drainMs:
      read('DRAIN_SECONDS', 0, `a number of seconds, 0–${MAX_DRAIN_SECONDS}`, numberIn(0, MAX_DRAIN_SECONDS)) * 1_000,
    dataDir: read('DATA_DIR', './data', 'a folder', text => text),
    databaseUrl,
    upgradeBackups: read('UPGRADE_BACKUPS', 2, 'a whole number, 0–100', integerIn(0, 100)),
    adminKey,
    adminKeyFile: env['ADMIN_KEY_FILE']?.trim() || null,
    masterKey,
    publicUrl,
    trustedProxies: read(
      'TRUSTED_PROXIES',
      [],
      'addresses and CIDR networks separated by commas, such as 10.0.0.5,192.168.0.0/16',
      parseProxies,
    ),
    logLevel: read('LOG_LEVEL', 'info', `one of ${LOG_LEVELS.join(', ')}`, text =>
      LOG_LEVELS.find(level => level === text),
    ),
    ratePerMinute: read('RATE_LIMIT_PER_MINUTE', 100, 'a whole number, 1–1000000000', integerIn(1, 1e9)),
    numberChecksPerDay: read('NUMBER_CHECKS_PER_DAY', 500, 'a whole number, 0–1000000', integerIn(0, 1e6)),
    messageTtlMs: read('MESSAGE_TTL_HOURS', 24, 'a number of hours, 0.000001–8760', numberIn(1e-6, 24 * 365)) * HOUR_MS,
    retentionMs: read('RETENTION_DAYS', 30, 'a number of days, 1–36500', numberIn(1, 36_500)) * DAY_MS,
    webhook: readWebhook(
      read,
      isLoopbackHost(host) && (!publicUrl || isLoopbackHost(publicUrl.hostname)) && !production,
    ),
    whatsapp: readWhatsApp(read),
    proxyNetworks: read(
      'PROXY_ALLOWED_NETWORKS',
      [],
      'addresses and CIDR networks separated by commas, each with a port if it is for that port only, such as 10.0.0.0/8,10.1.2.3:1080',
      parseNetworksAtPorts,
    ),
    media: readMedia(read),
    oidc: readOidc(read, problems, publicUrl),
    mail: readMail(read, problems),
    sandbox: read('SANDBOX', !production, '"on" or "off"', parseOnOff),
    traces: readTraces(read),
    misspelled: environment.findMisspelled(),
  }
  if (problems.length > 0) throw new BadSettings(problems)
  return settings
}

function readWebhook(read: ReadSetting, privateAllowed: boolean): Settings['webhook'] {
  return {
    timeoutMs: read('WEBHOOK_TIMEOUT_MS', 10_000, 'milliseconds, 100–600000', integerIn(100, 600_000)),
    retryDelaysMs: read(
      'WEBHOOK_RETRY_DELAYS_MS',
      RETRY_DELAYS_MS,
      `milliseconds separated by commas, at most ${MAX_RETRIES} of them`,
      parseDelays,
    ),
    allowedNetworks: read(
      'WEBHOOK_ALLOWED_NETWORKS',
      [],
      'CIDR networks separated by commas, such as 10.0.0.0/8',
      parseNetworks,
    ),
    privateAllowed,
  }
}

function readWhatsApp(read: ReadSetting): Settings['whatsapp'] {
  return {
    version: read('WHATSAPP_VERSION', null, 'three numbers, such as 2.3000.1035194821', parseVersion),
    device: read('WHATSAPP_DEVICE', DEFAULT_LINKED_DEVICE, `one of ${LINKED_DEVICES.join(', ')}`, text =>
      LINKED_DEVICES.find(device => device === text),
    ),
    passkeys: read('WHATSAPP_PASSKEY', false, '"on" or "off"', parseOnOff),
    url: read(
      'WHATSAPP_URL',
      null,
      'a ws:// or wss:// URL on a loopback address (for tests only)',
      parseLoopbackSocket,
    ),
    threads: read('WHATSAPP_THREADS', null, `a whole number, 1–${MAX_THREADS}`, integerIn(1, MAX_THREADS)),
  }
}

function readMail(read: ReadSetting, problems: string[]): Settings['mail'] {
  const url = read('SMTP_URL', null, 'an smtp:// or smtps:// URL', parseSmtpUrl)
  const from = read('SMTP_FROM', null, 'an e-mail address', text => (/^[^\s@]+@[^\s@]+$/.test(text) ? text : undefined))
  if (url && from) return { url, from }
  if (url) problems.push('SMTP_FROM is required with SMTP_URL: the address that alerts come from.')
  return null
}

function readOidc(read: ReadSetting, problems: string[], publicUrl: URL | null): Settings['oidc'] {
  const issuer = read('OIDC_ISSUER', null, 'an https URL, or an http one on a loopback address', parseIssuer)
  const clientId = read('OIDC_CLIENT_ID', null, 'the ID of this client at the provider', text => text)
  const clientSecret = read('OIDC_CLIENT_SECRET', null, 'the secret of this client at the provider', text => text)
  const name = read('OIDC_NAME', null, `at most ${MAX_OIDC_NAME_LENGTH} characters`, text =>
    text.length <= MAX_OIDC_NAME_LENGTH ? text : undefined,
  )
  if (!issuer) return null
  const missing = Object.entries({ OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret, PUBLIC_URL: publicUrl })
  for (const [required, value] of missing) {
    if (value === null && !problems.some(problem => problem.startsWith(required)))
      problems.push(`${required} is required with OIDC_ISSUER.`)
  }
  return clientId && clientSecret ? { issuer, clientId, clientSecret, name: name ?? issuer.host } : null
}

/** Whether `host` is a loopback address or name, in any notation. */
export function isLoopbackHost(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  return isIP(name) !== 0 && ipaddr.process(name).range() === 'loopback'
}

function parseOnOff(text: string): boolean | undefined {
  return text === 'on' ? true : text === 'off' ? false : undefined
}

/** Pombal cannot be served below a path. */
function parseOrigin(text: string): URL | undefined {
  const url = parseHttpUrl(text)
  return url?.href === `${url?.origin}/` ? url : undefined
}

/** Over plain http, anybody in between could sign in as anybody. */
function parseIssuer(text: string): URL | undefined {
  const url = parseHttpUrl(text)
  if (!url || url.username || url.password || url.search || url.hash) return undefined
  return url.protocol === 'https:' || isLoopbackHost(url.hostname) ? url : undefined
}

function parsePostgresUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^postgres(ql)?:\/\//.test(text)) return undefined
  return [url.username, url.password, url.hostname, url.pathname].every(part => tryDecode(part) !== null)
    ? text
    : undefined
}

/**
 * Adds `requireTLS=true` if the password would cross a network. Without it, the password is sent in plain text if STARTTLS is missing
 * in the server's answer, and anybody in between can remove it.
 */
function parseSmtpUrl(text: string): string | undefined {
  if (!/^smtps?:\/\//.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const isExposed = url.protocol === 'smtp:' && url.username !== '' && !isLoopbackHost(url.hostname)
  if (!isExposed || url.searchParams.has('requireTLS')) return text
  url.searchParams.set('requireTLS', 'true')
  return url.href
}

/** @returns undefined unless `text` has the `ADMIN_KEY_FORMAT` */
export function parseAdminKey(text: string): string | undefined {
  const { length } = text
  const isLong = length >= MIN_ADMIN_KEY_LENGTH && length <= MAX_ADMIN_KEY_LENGTH
  return isLong && /^[\x21-\x7e]+$/.test(text) ? text : undefined
}

/** @returns the key's 32 bytes, or undefined if `text` is not their base64 or hex digits */
export function parseMasterKey(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  const key = Buffer.from(text, 'base64')
  return key.length === MASTER_KEY_BYTES && key.toString('base64') === text ? key : undefined
}

function parseDelays(text: string): readonly number[] | undefined {
  const delays = text.split(',').map(part => integerIn(0, MAX_RETRY_DELAY_MS)(part.trim()))
  return delays.length <= MAX_RETRIES && delays.every(delay => delay !== undefined) ? delays : undefined
}

function parseNetworks(text: string): string[] | undefined {
  const networks = text.split(',').map(part => part.trim())
  return networks.every(network => ipaddr.isValidCIDR(network)) ? networks : undefined
}

/** Refuses /0 networks: a trusted proxy may claim any address. */
function parseProxies(text: string): string[] | undefined {
  const proxies = text.split(',').map(part => part.trim())
  const isProxy = (proxy: string) => isIP(proxy) !== 0 || (ipaddr.isValidCIDR(proxy) && ipaddr.parseCIDR(proxy)[1] > 0)
  return proxies.every(isProxy) ? proxies : undefined
}

function parseVersion(text: string): [number, number, number] | undefined {
  const [first, second, third, ...more] = text.split('.').map(integerIn(0, MAX_UINT32))
  if (first === undefined || second === undefined || third === undefined || more.length > 0) return undefined
  return [first, second, third]
}

/** Accepts only what the driver connects to: no IPv4-mapped address and no name under `localhost`. */
function parseLoopbackSocket(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'ws:' && url.protocol !== 'wss:')) return undefined
  const { hostname, href } = url
  const isLoopback =
    hostname === 'localhost' || hostname === '[::1]' || (isIP(hostname) === 4 && isLoopbackHost(hostname))
  return isLoopback ? href : undefined
}
