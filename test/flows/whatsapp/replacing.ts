/** The part of the store with other methods in place of some of its own. */
export function replacing<T extends object>(part: T, methods: Partial<T>): T {
  return new Proxy(part, {
    get: (target, key) => {
      const method = Reflect.get(methods, key) ?? Reflect.get(target, key)
      return typeof method === 'function' ? method.bind(target) : method
    },
  })
}
