import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { processOf, secretsFileOf } from './log-capture.ts'

/** Shorter texts may be ordinary words of the log, so they are only found as a whole JSON value. */
const DISTINCT_LENGTH = 10
/** Shorter texts are not searched for. */
const LEAST_LENGTH = 4
/** The names of private keys in libsignal and Baileys, and the forms that Node uses to print bytes. */
const KEY_MATERIAL = /privKey|privateKey|rootKey|chainKey|advSecret|signedIdentityKey|noiseKey|<Buffer |"type":"Buffer"/
/** 32 bytes in hex or base64: the size of WhatsApp's keys and Pombal's own. */
const KEY_SIZED = /(?<![\w+/-])(?:[\da-f]{64}|[A-Za-z\d+/]{43}=)(?![\w+/=-])/
const SHOWN_AROUND = 60

/** Scans all logs of a run. @returns one sentence per secret that was found */
export function scanLogs(folder: string): { violations: string[]; bytes: number; secrets: number } {
  const violations: string[] = []
  let bytes = 0
  let known = 0
  for (const file of readdirSync(folder)) {
    const process = processOf(file)
    if (process === null) continue
    const log = readFileSync(join(folder, file), 'utf8')
    const secrets = readSecrets(join(folder, secretsFileOf(process)))
    bytes += log.length
    known += secrets.length
    violations.push(...findIn(log, secrets))
  }
  return { violations, bytes, secrets: known }
}

function readSecrets(file: string): string[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map(line => JSON.parse(line) as string)
}

/** @returns one sentence per secret in the log, in any encoding */
export function findIn(log: string, secrets: readonly string[]): string[] {
  const violations: string[] = []
  const lowered = log.toLowerCase()
  // The banner contains ordinary words such as "first", so short texts are searched for in JSON lines only.
  const lines = lowered
    .split('\n')
    .filter(line => line.startsWith('{'))
    .join('\n')
  for (const secret of secrets) {
    const searched = secret.length < DISTINCT_LENGTH ? lines : lowered
    for (const encoding of encodingsOf(secret)) {
      const at = searched.indexOf(encoding.toLowerCase())
      if (at >= 0) violations.push(`"${secret}" was logged: ${around(searched, at)}`)
    }
  }
  for (const pattern of [KEY_MATERIAL, KEY_SIZED]) {
    const match = pattern.exec(log)
    if (match) violations.push(`What looks like a key was logged: ${around(log, match.index)}`)
  }
  return violations
}

/** The encodings of the secret that a logger may print. */
function encodingsOf(secret: string): string[] {
  const quoted = JSON.stringify(secret)
  if (secret.length < LEAST_LENGTH) return []
  if (secret.length < DISTINCT_LENGTH) return [quoted]
  const bytes = Buffer.from(secret)
  // The last base64 character depends on the bytes that follow.
  const base64 = bytes.toString('base64').replace(/=+$/, '').slice(0, -1)
  return [...new Set([secret, quoted.slice(1, -1), base64, bytes.toString('hex'), bytes.toJSON().data.join(',')])]
}

function around(log: string, at: number): string {
  return log.slice(Math.max(0, at - SHOWN_AROUND), at + SHOWN_AROUND).replaceAll('\n', ' ')
}
