/** A map that drops the entry set longest ago when it has more than `capacity`. Nothing expires. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #capacity: number

  constructor(capacity: number) {
    super()
    this.#capacity = capacity
  }

  /** Makes the entry the newest, even if the key was already present. */
  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#capacity) this.delete(this.keys().next().value!)
    return this
  }
}
