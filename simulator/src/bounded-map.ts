/** A map that forgets its oldest entries. An entry that is set again is the newest. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number

  /** @param max the number of entries that it keeps */
  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#max) this.delete(this.keys().next().value!)
    return this
  }
}
