import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * All that services write in one run of the suite, and what they may not have written: one pair of files per process of
 * the suite, in the folder that the run has made. `log-setup.ts` reads them when the run is over.
 */
export const LOG_FOLDER_VARIABLE = 'POMBAL_TEST_LOGS'

const LOG_SUFFIX = '.log'
const SECRETS_SUFFIX = '.secrets'
export const logFileOf = (process: string) => `${process}${LOG_SUFFIX}`
export const secretsFileOf = (process: string) => `${process}${SECRETS_SUFFIX}`
export const processOf = (file: string) => (file.endsWith(LOG_SUFFIX) ? file.slice(0, -LOG_SUFFIX.length) : null)

/** A QR code tells the secret with which a phone confirms the link. */
const SECRET_FIELDS: ReadonlySet<string> = new Set(['token', 'secret', 'qr', 'pairingCode', 'password'])
/** Of a long text its beginning is looked for. */
const LOOKED_FOR = 1_000
const noted = new Set<string>()

/** Keeps what was logged. Outside of the suite it does nothing. */
export function keepLog(text: string): void {
  append(logFileOf, text)
}

/** A token, key or secret: it may not be found in the log, whatever it is printed as. */
export function noteSecret(secret: string | undefined): void {
  if (secret) note(secret)
}

/** The same for a message's text. Texts that are told apart by a number at their end are looked for without it. */
export function noteText(text: string): void {
  const withoutNumber = text.slice(0, LOOKED_FOR).replace(/[\d\s]+$/, '')
  note(withoutNumber === '' ? text : withoutNumber)
}

/** What there is to note in the body of a request or an answer of the service. */
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
