import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Collects the logs of all services of a test run, and the secrets that must not be in them: one pair of files per test
 * process, in a folder of the run. `log-setup.ts` scans them at the end.
 */
export const LOG_FOLDER_VARIABLE = 'POMBAL_TEST_LOGS'

const LOG_SUFFIX = '.log'
const SECRETS_SUFFIX = '.secrets'
export const logFileOf = (process: string) => `${process}${LOG_SUFFIX}`
export const secretsFileOf = (process: string) => `${process}${SECRETS_SUFFIX}`
export const processOf = (file: string) => (file.endsWith(LOG_SUFFIX) ? file.slice(0, -LOG_SUFFIX.length) : null)

/** Fields whose values are secrets. A QR code contains the secret that a phone uses to confirm the link. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'token',
  'secret',
  'qr',
  'pairingCode',
  'clientDataJSON',
  'authenticatorData',
  'signature',
  'password',
  'oldPassword',
  'newPassword',
])
/** Only the beginning of a long text is searched for. */
const MAX_SEARCHED = 1_000
const noted = new Set<string>()

/** Collects log output. Does nothing outside a run of the suite. */
export function captureLog(text: string): void {
  append(logFileOf, text)
}

/** Registers a token, key or secret, which must not appear in the log in any encoding. */
export function noteSecret(secret: string | undefined): void {
  if (secret) note(secret)
}

/** Registers a message's text. Many tests number their texts, so a number at the end is not part of the search. */
export function noteText(text: string): void {
  const withoutNumber = text.slice(0, MAX_SEARCHED).replace(/[\d\s]+$/, '')
  note(withoutNumber === '' ? text : withoutNumber)
}

/** Registers the secrets and texts in the body of a request or response. */
export function noteBody(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  for (const [name, value] of Object.entries(body)) {
    if (typeof value !== 'string') noteBody(value)
    else if (name === 'text') noteText(value)
    else if (SECRET_FIELDS.has(name)) note(value)
  }
}

function note(value: string): void {
  if (noted.has(value)) return
  noted.add(value)
  append(secretsFileOf, `${JSON.stringify(value)}\n`)
}

function append(fileOf: (process: string) => string, text: string): void {
  const folder = process.env[LOG_FOLDER_VARIABLE]
  if (folder !== undefined) appendFileSync(join(folder, fileOf(String(process.pid))), text)
}
