// What the page uses of preact, its hooks and htm.

export function html(strings: TemplateStringsArray, ...values: any[]): VNode
export function render(node: VNode, parent: Element): void
export function useState<T>(initial: T | (() => T)): [T, (next: T | ((old: T) => T)) => void]
export function useRef<T>(initial: T): { current: T }
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T
export function useErrorBoundary(f?: (error: any) => void): [any, () => void]
