export function isFromPombal(body: Buffer, signature: string | undefined, secret: string): boolean
