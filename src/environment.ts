import { readFileSync } from 'node:fs'
import { distance } from 'fastest-levenshtein'

/** Also read from the file that `<name>_FILE` names, as Docker and Kubernetes provide secrets. */
export const SECRETS: ReadonlySet<string> = new Set([
  'ADMIN_KEY',
  'MASTER_KEY',
  'NEW_MASTER_KEY',
  'DATABASE_URL',
  'SMTP_URL',
  'OIDC_CLIENT_SECRET',
  'IMPORT_DATABASE_URL',
  'IMPORT_REDIS_URL',
  'OTEL_EXPORTER_OTLP_HEADERS',
])
/** Shorter names are too similar. */
const MIN_SIMILAR_LENGTH = 8
const MAX_TYPOS = 2
const OWN_PREFIX = 'POMBAL_'

/** The environment variables of a process. */
export class Environment {
  readonly #env: NodeJS.ProcessEnv
  readonly #names = new Set<string>()

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env
  }

  /**
   * @returns the value, or null if it is unset or empty
   * @throws Error with a message for the operator, if its file is empty or unreadable, or if it is set twice
   */
  get(name: string): string | null {
    const value = this.#trimmed(name)
    const file = SECRETS.has(name) ? this.#trimmed(`${name}_FILE`) : null
    if (file === null) return value
    if (value !== null) throw new Error(`${name} and ${name}_FILE are both set: unset one of them.`)
    const content = readSecret(name, file)
    if (content === '') throw new Error(`${name}_FILE names an empty file.`)
    return content
  }

  /** Sentences about variables whose names are almost those of settings that were read. */
  findMisspelled(): string[] {
    return Object.keys(this.#env).flatMap(name => {
      const meant = this.#names.has(name) ? undefined : this.#similarTo(name)
      return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`]
    })
  }

  #similarTo(name: string): string | undefined {
    const own = name.startsWith(OWN_PREFIX) ? name.slice(OWN_PREFIX.length) : null
    return [...this.#names].find(
      known =>
        known === own ||
        known === name.toUpperCase() ||
        (name.length >= MIN_SIMILAR_LENGTH && (distance(known, name) <= MAX_TYPOS || known.startsWith(`${name}_`))),
    )
  }

  #trimmed(name: string): string | null {
    this.#names.add(name)
    return this.#env[name]?.trim() || null
  }
}

function readSecret(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Error(`${name}_FILE cannot be read: ${(error as Error).message}.`, { cause: error })
  }
}
