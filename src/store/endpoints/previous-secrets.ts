import { PREVIOUS_SECRET_MS } from '../../domain/events/endpoint.ts'

/** If there are more rotations within 24 h, the oldest secret stops signing early. */
const MAX_PREVIOUS = 5

/** The columns of an endpoint's secrets. The values are sealed. */
export interface SecretColumns {
  secret: Uint8Array
  /** One secret, or the JSON of several, the latest first. */
  previous_secret: Uint8Array | null
  /** When the latest previous secret stops signing. */
  previous_secret_until: number | null
}

interface PreviousSecret {
  secret: string
  until: number
}

interface SealingOfEndpoint {
  seal(text: string): Uint8Array
  open(sealed: Uint8Array): string
}

/**
 * The columns after a rotation. Every secret that was replaced less than 24 h ago keeps signing. A rotation is often
 * repeated, because no answer came or somebody clicked twice, and the receiver may still have the secret from before
 * the first one.
 */
export function rotate(
  row: SecretColumns,
  secret: string,
  now: number,
  { seal, open }: SealingOfEndpoint,
): SecretColumns {
  const until = now + PREVIOUS_SECRET_MS
  const { previous_secret, previous_secret_until } = row
  const previous = previousAt(now, previous_secret && open(previous_secret), previous_secret_until)
  const all = [{ secret: open(row.secret), until }, ...previous].slice(0, MAX_PREVIOUS)
  return {
    secret: seal(secret),
    // A single secret is stored without JSON, so that nodes of the previous version can read it.
    previous_secret: seal(all.length === 1 ? all[0]!.secret : JSON.stringify(all)),
    previous_secret_until: until,
  }
}

/**
 * The previous secrets that sign at this time, the latest first.
 * @param opened the column `previous_secret`, opened
 * @param until the column `previous_secret_until`
 */
export function previousAt(now: number, opened: string | null, until: number | null): PreviousSecret[] {
  if (opened === null) return []
  const all: PreviousSecret[] = opened.startsWith('[') ? JSON.parse(opened) : [{ secret: opened, until: until ?? 0 }]
  return all.filter(previous => now < previous.until)
}
