export function isFromPombal(body: Buffer, headers: Readonly<Record<string, string>>, secret: string): boolean
