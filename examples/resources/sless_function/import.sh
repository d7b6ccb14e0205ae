terraform import sless_function.orders shop/orders
