/**
 * The settings that an account's devices share, such as archived chats: collections of patches, which the server cannot
 * read. A client sends a patch for the version that it has, and is refused if another patch came first.
 */
import { proto } from 'baileys/WAProto/index.js'
import type { Records } from '../signal/records.ts'

const DIGITS = 12

export class AppState {
  readonly #records: Records
  readonly #patches = new Map<string, Buffer[]>()

  constructor(records: Records) {
    this.#records = records
  }

  /** Patches must be restored in the order of their keys. */
  restore(key: string, text: string): void {
    this.#of(key.split('/')[1]!).push(Buffer.from(JSON.parse(text), 'base64'))
  }

  version(collection: string): number {
    return this.#of(collection).length
  }

  /** The patches that lead from this version to the present one. */
  since(collection: string, version: number): readonly Buffer[] {
    return this.#of(collection).slice(version)
  }

  add(collection: string, patch: Buffer): void {
    const patches = this.#of(collection)
    const version = patches.length + 1
    // The server numbers the patches.
    const numbered = { ...proto.SyncdPatch.decode(patch), version: { version } }
    const encoded = Buffer.from(proto.SyncdPatch.encode(numbered).finish())
    patches.push(encoded)
    const key = `appstate/${collection}/${version.toString().padStart(DIGITS, '0')}`
    this.#records.put(key, () => JSON.stringify(encoded.toString('base64')))
  }

  #of(collection: string): Buffer[] {
    const known = this.#patches.get(collection)
    if (known) return known
    const patches: Buffer[] = []
    this.#patches.set(collection, patches)
    return patches
  }
}
